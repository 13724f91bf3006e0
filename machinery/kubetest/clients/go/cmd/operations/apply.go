package main

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applyappsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
)

// apply: configurations of several managers meet in one object, each its own fields.
func apply(w *world) {
	deployments := w.client.AppsV1().Deployments("default")
	owner := applyDeployment("web").WithSpec(applyappsv1.DeploymentSpec().WithReplicas(2).
		WithSelector(applymetav1.LabelSelector().WithMatchLabels(map[string]string{"app": "web"})).
		WithTemplate(applycorev1.PodTemplateSpec().WithLabels(map[string]string{"app": "web"}).
			WithSpec(applycorev1.PodSpec().WithContainers(
				applycorev1.Container().WithName("main").WithImage("web:1").
					WithPorts(applycorev1.ContainerPort().WithContainerPort(53).WithProtocol(corev1.ProtocolUDP),
						applycorev1.ContainerPort().WithContainerPort(53).WithProtocol(corev1.ProtocolTCP))))))
	made := ok(deployments.Apply(w.ctx, owner, metav1.ApplyOptions{FieldManager: "owner"}))
	again := ok(deployments.Apply(w.ctx, owner, metav1.ApplyOptions{FieldManager: "owner"}))
	equal("the version after nothing new", again.ResourceVersion, made.ResourceVersion)
	equal("ports", len(again.Spec.Template.Spec.Containers[0].Ports), 2)

	// Another manager owns another container, and replicas by force alone.
	sidecar := applyDeployment("web").WithSpec(applyappsv1.DeploymentSpec().
		WithTemplate(applycorev1.PodTemplateSpec().WithSpec(applycorev1.PodSpec().WithContainers(
			applycorev1.Container().WithName("proxy").WithImage("proxy:1")))))
	both := ok(deployments.Apply(w.ctx, sidecar, metav1.ApplyOptions{FieldManager: "sidecar"}))
	equal("containers", len(both.Spec.Template.Spec.Containers), 2)
	scaler := applyDeployment("web").WithSpec(applyappsv1.DeploymentSpec().WithReplicas(7))
	_, err := deployments.Apply(w.ctx, scaler, metav1.ApplyOptions{FieldManager: "scaler"})
	refused("what another manager owns", err, errors.IsConflict)
	causes := err.(*errors.StatusError).ErrStatus.Details.Causes
	if len(causes) != 1 || causes[0].Type != metav1.CauseTypeFieldManagerConflict || causes[0].Field != ".spec.replicas" ||
		!strings.Contains(causes[0].Message, `"owner"`) {
		fail("the causes of a conflict: %#v", causes)
	}
	forced := ok(deployments.Apply(w.ctx, scaler, metav1.ApplyOptions{FieldManager: "scaler", Force: true}))
	equal("replicas", *forced.Spec.Replicas, int32(7))

	// A controller extracts what is its own, changes it, and applies that.
	mine := ok(applyappsv1.ExtractDeployment(forced, "sidecar"))
	equal("containers of its own", len(mine.Spec.Template.Spec.Containers), 1)
	mine.Spec.Template.Spec.Containers[0].WithImage("proxy:2")
	changed := ok(deployments.Apply(w.ctx, mine, metav1.ApplyOptions{FieldManager: "sidecar"}))
	equal("the image", changed.Spec.Template.Spec.Containers[1].Image, "proxy:2")
	theirs := ok(applyappsv1.ExtractDeployment(changed, "owner"))
	if theirs.Spec.Replicas != nil {
		fail("the owner still owns the replicas")
	}
	// What nobody applies any longer goes.
	empty := ok(deployments.Apply(w.ctx, applyDeployment("web"), metav1.ApplyOptions{FieldManager: "sidecar"}))
	equal("containers without the sidecar", len(empty.Spec.Template.Spec.Containers), 1)

	status := applyDeployment("web").WithStatus(applyappsv1.DeploymentStatus().WithConditions(
		applyappsv1.DeploymentCondition().WithType(appsv1.DeploymentAvailable).WithStatus(corev1.ConditionTrue)))
	ok(deployments.ApplyStatus(w.ctx, status, metav1.ApplyOptions{FieldManager: "observer"}))
	found := ok(deployments.Get(w.ctx, "web", metav1.GetOptions{}))
	equal("the condition", found.Status.Conditions[0].Status, corev1.ConditionTrue)
	var parts []string
	for _, entry := range found.ManagedFields {
		parts = append(parts, entry.Manager+"/"+entry.Subresource)
	}
	slices.Sort(parts)
	equal("the managers", strings.Join(parts, " "), "observer/status owner/ scaler/")
}

func applyDeployment(name string) *applyappsv1.DeploymentApplyConfiguration {
	return applyappsv1.Deployment(name, "default")
}

func deployment(name string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "main:1"}}},
			},
		},
	}
}
