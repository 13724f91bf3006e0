package main

import (
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
)

// conflicts are found, and those who try again lose nothing.
func conflicts(w *world) {
	maps := w.client.CoreV1().ConfigMaps("default")
	counter := configMap("counter", nil)
	counter.Data = map[string]string{"count": "0"}
	old := ok(maps.Create(w.ctx, counter, metav1.CreateOptions{}))
	_, err := maps.Create(w.ctx, counter, metav1.CreateOptions{})
	refused("a second one", err, errors.IsAlreadyExists)

	const workers, times = 8, 10
	steps := wait.Backoff{Steps: 1000, Duration: time.Millisecond, Factor: 1, Jitter: 5}
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for range times {
				must(retry.RetryOnConflict(steps, func() error {
					found, err := maps.Get(w.ctx, "counter", metav1.GetOptions{})
					if err != nil {
						return err
					}
					found.Data["count"] = strconv.Itoa(ok(strconv.Atoi(found.Data["count"])) + 1)
					_, err = maps.Update(w.ctx, found, metav1.UpdateOptions{})
					return err
				}))
			}
		})
	}
	group.Wait()
	equal("the count", ok(maps.Get(w.ctx, "counter", metav1.GetOptions{})).Data["count"], strconv.Itoa(workers*times))

	_, err = maps.Update(w.ctx, old, metav1.UpdateOptions{})
	refused("an update of an old version", err, errors.IsConflict)
	stale := []byte(`{"metadata":{"resourceVersion":"` + old.ResourceVersion + `"},"data":{"count":"9"}}`)
	for _, kind := range []types.PatchType{types.MergePatchType, types.StrategicMergePatchType} {
		_, err = maps.Patch(w.ctx, "counter", kind, stale, metav1.PatchOptions{})
		refused("a patch of an old version", err, errors.IsConflict)
	}
	wrong := types.UID("00000000-0000-0000-0000-000000000000")
	err = maps.Delete(w.ctx, "counter", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &wrong}})
	refused("a delete of another object", err, errors.IsConflict)

	_, err = maps.Get(w.ctx, "missing", metav1.GetOptions{})
	refused("what is not there", err, errors.IsNotFound)
	_, err = maps.Create(w.ctx, configMap("Not A Name", nil), metav1.CreateOptions{})
	refused("a name that is none", err, errors.IsInvalid)
	if causes := err.(*errors.StatusError).ErrStatus.Details.Causes; len(causes) != 1 || causes[0].Field != "metadata.name" {
		fail("the causes of a wrong name: %v", causes)
	}
	deployments := w.client.AppsV1().Deployments("default")
	ok(deployments.Create(w.ctx, deployment("web"), metav1.CreateOptions{}))
	scale := ok(deployments.GetScale(w.ctx, "web", metav1.GetOptions{}))
	scale.Spec.Replicas = 5
	ok(deployments.UpdateScale(w.ctx, "web", scale, metav1.UpdateOptions{}))
	_, err = deployments.UpdateScale(w.ctx, "web", scale, metav1.UpdateOptions{})
	refused("a scale of an old version", err, errors.IsConflict)
	found := ok(deployments.Get(w.ctx, "web", metav1.GetOptions{}))
	equal("replicas", *found.Spec.Replicas, int32(5))
	found.Status.ObservedGeneration = found.Generation
	found.Spec.Replicas = nil
	status := ok(deployments.UpdateStatus(w.ctx, found, metav1.UpdateOptions{}))
	equal("replicas after a change of the status", *status.Spec.Replicas, int32(5))
	equal("the generation", status.Generation, found.Generation)

	pods := w.client.CoreV1().Pods("default")
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "pod-"}}
	pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "main:1"}}
	made := ok(pods.Create(w.ctx, pod, metav1.CreateOptions{}))
	must(pods.EvictV1(w.ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: made.Name, Namespace: "default"}}))
	_, err = pods.Get(w.ctx, made.Name, metav1.GetOptions{})
	refused("a pod that was evicted before it ran", err, errors.IsNotFound)
}
