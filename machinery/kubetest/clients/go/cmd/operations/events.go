package main

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	kube "k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"
)

// events are recorded by both recorders; what repeats is counted.
func events(w *world) {
	about := ok(w.client.CoreV1().ConfigMaps("default").Create(w.ctx, configMap("about", nil), metav1.CreateOptions{}))

	old := record.NewBroadcaster(record.WithContext(w.ctx))
	old.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: w.client.CoreV1().Events("")})
	recorder := old.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "old"})
	for range 3 {
		recorder.Eventf(about, corev1.EventTypeNormal, "Repeated", "again %s", about.Name)
	}
	w.until("the events are one that is counted", func() bool {
		found := ok(w.client.CoreV1().Events("default").List(w.ctx, metav1.ListOptions{
			FieldSelector: "involvedObject.name=about,reason=Repeated",
		}))
		return len(found.Items) == 1 && found.Items[0].Count == 3
	})

	broadcaster := kube.NewBroadcaster(&kube.EventSinkImpl{Interface: w.client.EventsV1()})
	must(broadcaster.StartRecordingToSinkWithContext(w.ctx))
	series := broadcaster.NewRecorder(scheme.Scheme, "new")
	for range 3 {
		series.Eventf(about, nil, corev1.EventTypeWarning, "Serial", "Testing", "again %s", about.Name)
	}
	w.until("the events are one with a series", func() bool {
		found := ok(w.client.EventsV1().Events("default").List(w.ctx, metav1.ListOptions{FieldSelector: "reason=Serial"}))
		return len(found.Items) == 1 && found.Items[0].Series != nil
	})
	seen := ok(w.client.CoreV1().Events("default").List(w.ctx, metav1.ListOptions{FieldSelector: "reason=Serial"}))
	equal("the reporter, in the other version", seen.Items[0].ReportingController, "new")
}
