package hostile

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apps "k8s.io/client-go/kubernetes/typed/apps/v1"
	core "k8s.io/client-go/kubernetes/typed/core/v1"
)

// fleet is the Deployment controller, and the node, of the neighbour: one Pod of each
// Deployment, which is well at once.
type fleet struct {
	ctx         context.Context
	pods        core.PodInterface
	deployments apps.DeploymentInterface
}

// roll replaces the Pod of a Deployment whose template may have changed. After an error it
// is called again, as everything is seen each second.
func (f *fleet) roll(deployment *appsv1.Deployment) {
	if deployment.Status.ObservedGeneration == deployment.Generation {
		return
	}
	template, now := deployment.Spec.Template.DeepCopy(), metav1.Now()
	owner := metav1.NewControllerRef(deployment, appsv1.SchemeGroupVersion.WithKind("Deployment"))
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Name, pod.OwnerReferences, pod.Spec.NodeName = fmt.Sprintf("%s-%d", deployment.Name, deployment.Generation), []metav1.OwnerReference{*owner}, "node"
	pod, err := f.pods.Create(f.ctx, pod, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		pod, err = f.pods.Get(f.ctx, fmt.Sprintf("%s-%d", deployment.Name, deployment.Generation), metav1.GetOptions{})
	}
	if err != nil {
		return
	}
	running := corev1.ContainerStatus{Name: "app", Ready: true, Image: "none", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}}
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{running},
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: now}}}
	if _, err := f.pods.UpdateStatus(f.ctx, pod, metav1.UpdateOptions{}); err != nil {
		return
	}
	at := func(kind appsv1.DeploymentConditionType, reason string) appsv1.DeploymentCondition {
		return appsv1.DeploymentCondition{Type: kind, Status: corev1.ConditionTrue, Reason: reason, LastUpdateTime: now, LastTransitionTime: now}
	}
	others := metav1.ListOptions{LabelSelector: "app=" + deployment.Name, FieldSelector: "metadata.name!=" + pod.Name}
	if err := f.pods.DeleteCollection(f.ctx, *metav1.NewDeleteOptions(0), others); err != nil {
		return
	}
	done := deployment.DeepCopy()
	done.Status = appsv1.DeploymentStatus{
		ObservedGeneration: done.Generation, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1,
		Conditions: []appsv1.DeploymentCondition{at(appsv1.DeploymentAvailable, "MinimumReplicasAvailable"), at(appsv1.DeploymentProgressing, "NewReplicaSetAvailable")},
	}
	_, _ = f.deployments.UpdateStatus(f.ctx, done, metav1.UpdateOptions{}) // or once more
}
