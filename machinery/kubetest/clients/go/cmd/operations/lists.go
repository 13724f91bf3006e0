package main

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/pager"
)

// lists come in pages of one moment, by selectors, and as metadata alone.
func lists(w *world) {
	maps := w.client.CoreV1().ConfigMaps("default")
	for number := range 25 {
		group := map[string]string{"group": fmt.Sprint(number % 2)}
		ok(maps.Create(w.ctx, configMap(fmt.Sprintf("page-%02d", number), group), metav1.CreateOptions{}))
	}
	pages := 0
	paged := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		pages++
		return maps.List(ctx, options)
	})
	paged.PageSize = 10
	var names []string
	must(paged.EachListItem(w.ctx, metav1.ListOptions{LabelSelector: "group"}, func(item runtime.Object) error {
		names = append(names, ok(meta.Accessor(item)).GetName())
		return nil
	}))
	equal("pages", pages, 3)
	equal("objects", len(names), 25)
	equal("the last", names[24], "page-24")

	first := ok(maps.List(w.ctx, metav1.ListOptions{LabelSelector: "group=1", Limit: 5}))
	must(maps.Delete(w.ctx, "page-11", metav1.DeleteOptions{}))
	second := ok(maps.List(w.ctx, metav1.ListOptions{LabelSelector: "group=1", Limit: 5, Continue: first.Continue}))
	equal("a page of the same moment", second.Items[0].Name, "page-11")
	equal("its version", second.ResourceVersion, first.ResourceVersion)
	exact := ok(maps.List(w.ctx, metav1.ListOptions{
		LabelSelector: "group=1", ResourceVersion: first.ResourceVersion, ResourceVersionMatch: metav1.ResourceVersionMatchExact,
	}))
	equal("at that version", len(exact.Items), 12)
	_, err := maps.List(w.ctx, metav1.ListOptions{Continue: "nonsense"})
	refused("a token that is none", err, errors.IsBadRequest)

	named := ok(maps.List(w.ctx, metav1.ListOptions{FieldSelector: "metadata.name=page-03"}))
	equal("by name", len(named.Items), 1)
	outlines := metadata.NewForConfigOrDie(w.config)
	resource := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	outline := ok(outlines.Resource(resource).Namespace("default").List(w.ctx, metav1.ListOptions{LabelSelector: "group=0"}))
	equal("outlines", len(outline.Items), 13)
	equal("the label of an outline", outline.Items[0].Labels["group"], "0")
	must(maps.DeleteCollection(w.ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "group=0"}))
	rest := ok(maps.List(w.ctx, metav1.ListOptions{LabelSelector: "group"}))
	equal("after the collection was deleted", len(rest.Items), 11)
}
