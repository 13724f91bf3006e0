package main

import (
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	kube "k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// informers come to know what is there by a streaming list, and then follow it.
func informers(w *world) {
	maps := w.client.CoreV1().ConfigMaps("default")
	for _, name := range []string{"a", "b", "c"} {
		ok(maps.Create(w.ctx, configMap(name, map[string]string{"app": name}), metav1.CreateOptions{}))
	}
	all := kube.NewSharedInformerFactoryWithOptions(w.client, 0, kube.WithNamespace("default"))
	some := kube.NewSharedInformerFactoryWithOptions(w.client, 0, kube.WithNamespace("default"),
		kube.WithTweakListOptions(func(options *metav1.ListOptions) { options.LabelSelector = "app=b" }))
	var added, updated, deleted atomic.Int32
	informer := all.Core().V1().ConfigMaps()
	ok(informer.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { added.Add(1) },
		UpdateFunc: func(any, any) { updated.Add(1) },
		DeleteFunc: func(any) { deleted.Add(1) },
	}))
	selected := some.Core().V1().ConfigMaps()
	selected.Informer()
	deployments := all.Apps().V1().Deployments()
	deployments.Informer()
	for _, factory := range []kube.SharedInformerFactory{all, some} {
		factory.Start(w.ctx.Done())
		for kind, synced := range factory.WaitForCacheSync(w.ctx.Done()) {
			equal("synced "+kind.String(), synced, true)
		}
	}
	if len(w.asked.with("configmaps?", "watch=true", "sendInitialEvents=true")) != 2 {
		fail("no streaming lists: %v", w.asked.with("configmaps?"))
	}
	if lists := w.asked.with("GET", "configmaps?limit="); len(lists) != 0 {
		fail("fell back to lists: %v", lists)
	}
	known := func(lister interface {
		List(labels.Selector) ([]*corev1.ConfigMap, error)
	}) int {
		count := 0
		for _, found := range ok(lister.List(labels.Everything())) {
			if found.Labels["app"] != "" {
				count++
			}
		}
		return count
	}
	equal("in the cache", known(informer.Lister()), 3)
	equal("in the selection", known(selected.Lister()), 1)

	ok(maps.Create(w.ctx, configMap("d", map[string]string{"app": "b"}), metav1.CreateOptions{}))
	w.until("both caches know the new one", func() bool {
		return known(informer.Lister()) == 4 && known(selected.Lister()) == 2
	})
	leave := []byte(`{"metadata":{"labels":{"app":"z"}}}`)
	ok(maps.Patch(w.ctx, "b", types.MergePatchType, leave, metav1.PatchOptions{}))
	w.until("it left the selection", func() bool { return known(selected.Lister()) == 1 && updated.Load() == 1 })
	equal("it is still there", known(informer.Lister()), 4)
	must(maps.Delete(w.ctx, "d", metav1.DeleteOptions{}))
	w.until("it is gone", func() bool { return known(selected.Lister()) == 0 && deleted.Load() == 1 })
	if added.Load() < 4 {
		fail("%d were added", added.Load())
	}
	found := ok(informer.Lister().ConfigMaps("default").Get("b"))
	equal("the cached label", found.Labels["app"], "z")
}

func configMap(name string, labels map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Data:       map[string]string{"key": "value"},
	}
}
