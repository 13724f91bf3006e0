package main

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// election: one leads; when it lets go, the other does.
func election(w *world) {
	leads := make(chan string, 2)
	lost := make(chan string, 2)
	candidate := func(ctx context.Context, name string) {
		lock := ok(resourcelock.New(resourcelock.LeasesResourceLock, "default", "leader",
			w.client.CoreV1(), w.client.CoordinationV1(), resourcelock.ResourceLockConfig{Identity: name}))
		leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
			Lock: lock, LeaseDuration: 60 * time.Second, RenewDeadline: 30 * time.Second, RetryPeriod: 200 * time.Millisecond,
			ReleaseOnCancel: true, Name: name,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) { leads <- name },
				OnStoppedLeading: func() { lost <- name },
			},
		})
	}
	first, resign := context.WithCancel(w.ctx)
	go candidate(first, "first")
	equal("the first leader", w.next(leads), "first")
	leases := w.client.CoordinationV1().Leases("default")
	held := ok(leases.Get(w.ctx, "leader", metav1.GetOptions{}))
	equal("the holder", *held.Spec.HolderIdentity, "first")

	second, stop := context.WithCancel(w.ctx)
	go candidate(second, "second")
	w.until("the leader renews while another waits", func() bool {
		now := ok(leases.Get(w.ctx, "leader", metav1.GetOptions{}))
		equal("the holder", *now.Spec.HolderIdentity, "first")
		return now.Spec.RenewTime.After(held.Spec.RenewTime.Time)
	})
	resign()
	equal("who lost", w.next(lost), "first")
	equal("the second leader", w.next(leads), "second")
	now := ok(leases.Get(w.ctx, "leader", metav1.GetOptions{}))
	equal("the transitions", *now.Spec.LeaseTransitions, *held.Spec.LeaseTransitions+1)
	stop()
	equal("who stopped", w.next(lost), "second")
}

func (w *world) next(from <-chan string) string {
	select {
	case name := <-from:
		return name
	case <-w.ctx.Done():
		return "nobody"
	}
}
