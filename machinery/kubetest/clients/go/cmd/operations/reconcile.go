package main

import (
	"context"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

const finalizer = "example.org/cleanup"

// A copier keeps a Secret for each ConfigMap with a label, and cleans up after it.
type copier struct {
	client  client.Client
	cleaned chan string
}

func (c *copier) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var source corev1.ConfigMap
	if err := c.client.Get(ctx, request.NamespacedName, &source); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !source.DeletionTimestamp.IsZero() {
		if controllerutil.RemoveFinalizer(&source, finalizer) {
			if err := c.client.Update(ctx, &source); err != nil {
				return ctrl.Result{}, err
			}
			c.cleaned <- source.Name
		}
		return ctrl.Result{}, nil
	}
	if controllerutil.AddFinalizer(&source, finalizer) {
		return ctrl.Result{}, c.client.Update(ctx, &source)
	}
	copied := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: source.Name, Namespace: source.Namespace}}
	_, err := controllerutil.CreateOrUpdate(ctx, c.client, copied, func() error {
		copied.StringData = source.Data
		return controllerutil.SetControllerReference(&source, copied, scheme.Scheme)
	})
	return ctrl.Result{}, err
}

// reconcile runs a manager of controller-runtime, with its cache and its leader election.
func reconcile(w *world) {
	ctrl.SetLogger(logr.Discard())
	ctx, stop := context.WithCancel(w.ctx)
	manager := ok(ctrl.NewManager(w.config, ctrl.Options{
		Metrics: server.Options{BindAddress: "0"}, Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{"default": {}}},
		LeaderElection: true, LeaderElectionID: "copier", LeaderElectionNamespace: "default", LeaderElectionReleaseOnCancel: true,
	}))
	copier := &copier{client: manager.GetClient(), cleaned: make(chan string, 1)}
	ours := predicate.NewPredicateFuncs(func(object client.Object) bool {
		return object.GetLabels()["copy"] == "yes" || metav1.GetControllerOf(object) != nil
	})
	must(ctrl.NewControllerManagedBy(manager).
		For(&corev1.ConfigMap{}).WithEventFilter(ours).
		Owns(&corev1.Secret{}).Complete(copier))
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }()

	secrets := w.client.CoreV1().Secrets("default")
	maps := w.client.CoreV1().ConfigMaps("default")
	source := ok(maps.Create(w.ctx, configMap("source", map[string]string{"copy": "yes"}), metav1.CreateOptions{}))
	holds := func(value string) func() bool {
		return func() bool {
			found, err := secrets.Get(w.ctx, "source", metav1.GetOptions{})
			return err == nil && string(found.Data["key"]) == value
		}
	}
	w.until("there is a copy", holds("value"))
	equal("the owner", ok(secrets.Get(w.ctx, "source", metav1.GetOptions{})).OwnerReferences[0].UID, source.UID)
	must(secrets.Delete(w.ctx, "source", metav1.DeleteOptions{}))
	w.until("the copy is back", holds("value"))
	changed := ok(maps.Get(w.ctx, "source", metav1.GetOptions{}))
	changed.Data["key"] = "new"
	ok(maps.Update(w.ctx, changed, metav1.UpdateOptions{}))
	w.until("the copy is new", holds("new"))

	must(maps.Delete(w.ctx, "source", metav1.DeleteOptions{}))
	equal("who was cleaned up", w.next(copier.cleaned), "source")
	w.until("the source is gone", func() bool {
		_, err := maps.Get(w.ctx, "source", metav1.GetOptions{})
		return errors.IsNotFound(err)
	})
	if !w.bare {
		w.until("its copy goes with it", func() bool {
			_, err := secrets.Get(w.ctx, "source", metav1.GetOptions{})
			return errors.IsNotFound(err)
		})
	}
	stop()
	must(<-ended)
	w.until("nobody leads", func() bool {
		lease := ok(w.client.CoordinationV1().Leases("default").Get(w.ctx, "copier", metav1.GetOptions{}))
		return lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == ""
	})
}
