package main

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// watches go on where they were, say where they are, and are waited with.
func watches(w *world) {
	maps := w.client.CoreV1().ConfigMaps("default")
	first := ok(maps.Create(w.ctx, configMap("first", nil), metav1.CreateOptions{}))

	// Every change after a version, in order.
	stream := ok(maps.Watch(w.ctx, metav1.ListOptions{
		ResourceVersion: first.ResourceVersion, FieldSelector: "metadata.name=second",
	}))
	second := ok(maps.Create(w.ctx, configMap("second", nil), metav1.CreateOptions{}))
	ok(maps.Patch(w.ctx, "second", types.MergePatchType, []byte(`{"data":{"key":"changed"}}`), metav1.PatchOptions{}))
	must(maps.Delete(w.ctx, "second", metav1.DeleteOptions{}))
	for _, expected := range []watch.EventType{watch.Added, watch.Modified, watch.Deleted} {
		event := <-stream.ResultChan()
		equal("the event", event.Type, expected)
		equal("its object", event.Object.(*corev1.ConfigMap).UID, second.UID)
	}
	stream.Stop()

	// A watch that is resumed sees nothing twice, and nothing is lost while it was away.
	listWatch := &cache.ListWatch{WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
		seconds := int64(1)
		options.TimeoutSeconds = &seconds
		options.AllowWatchBookmarks = true
		return maps.Watch(ctx, options)
	}}
	retrying := ok(watchtools.NewRetryWatcherWithContext(w.ctx, first.ResourceVersion, listWatch))
	seen := map[string]int{}
	for len(w.asked.with("configmaps?", "timeoutSeconds=1&")) < 3 {
		select {
		case event := <-retrying.ResultChan():
			if event.Type == watch.Error {
				fail("an error in a watch: %v", errors.FromObject(event.Object))
			}
			if object, is := event.Object.(*corev1.ConfigMap); is && object.UID == second.UID {
				seen[string(event.Type)]++
			}
		case <-time.After(10 * time.Millisecond):
		case <-w.ctx.Done():
			fail("the watch was not resumed: %v", w.asked.with("watch"))
		}
	}
	retrying.Stop()
	for _, kind := range []watch.EventType{watch.Added, watch.Modified, watch.Deleted} {
		equal("seen of "+string(kind), seen[string(kind)], 1)
	}

	// The end of the initial events is marked, and carries the version to go on from.
	yes := true
	streaming := ok(maps.Watch(w.ctx, metav1.ListOptions{
		SendInitialEvents: &yes, AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	}))
	for {
		event := <-streaming.ResultChan()
		if event.Type == watch.Added {
			continue
		}
		equal("after the initial events", event.Type, watch.Bookmark)
		object := event.Object.(*corev1.ConfigMap)
		equal("the mark", object.Annotations[metav1.InitialEventsAnnotationKey], "true")
		if object.ResourceVersion == "" {
			fail("a bookmark without a version")
		}
		break
	}
	streaming.Stop()

	// What `kubectl wait` and controllers do.
	go func() {
		ok(maps.Patch(w.ctx, "first", types.MergePatchType, []byte(`{"data":{"key":"done"}}`), metav1.PatchOptions{}))
	}()
	following := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return maps.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return maps.Watch(ctx, options)
		},
	}
	_, err := watchtools.UntilWithSync(w.ctx, following, &corev1.ConfigMap{}, nil, func(event watch.Event) (bool, error) {
		object, is := event.Object.(*corev1.ConfigMap)
		return is && object.Data["key"] == "done", nil
	})
	must(err)
}
