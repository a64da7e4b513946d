package workload

import (
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Register makes the Go types known to scheme that Of reads.
func Register(scheme *runtime.Scheme) error {
	return errors.Join(appsv1.AddToScheme(scheme), batchv1.AddToScheme(scheme))
}

// Of reads one object of a built-in kind from its Go type as Decode and Status read it from JSON,
// except for Template.Same.
func (k *Kind) Of(whole runtime.Object) (*Object, Status, error) {
	var meta *metav1.ObjectMeta
	var template *corev1.PodTemplateSpec
	var o report
	switch whole := whole.(type) {
	case *appsv1.Deployment:
		meta, template, o = &whole.ObjectMeta, &whole.Spec.Template, deploymentReport(whole)
	case *appsv1.StatefulSet:
		meta, template, o = &whole.ObjectMeta, &whole.Spec.Template, statefulSetReport(whole)
	case *appsv1.DaemonSet:
		meta, template, o = &whole.ObjectMeta, &whole.Spec.Template, daemonSetReport(whole)
	case *batchv1.CronJob:
		meta, template = &whole.ObjectMeta, &whole.Spec.JobTemplate.Spec.Template
	default:
		return nil, Status{}, fmt.Errorf("reading a %s: it does not have the form of its kind", k.Name)
	}
	o.Metadata.Generation = meta.Generation
	status, err := k.status(&o)
	if err != nil {
		return nil, Status{}, fmt.Errorf("reading how far a %s is: %w", k.Name, err)
	}
	return &Object{
		Kind:     k,
		Metadata: MetadataOf(meta),
		Template: Template{Metadata: templateMetadata{Annotations: template.Annotations, written: true}, read: &template.Spec},
	}, status, nil
}

// MetadataOf returns what is read of an object's metadata.
func MetadataOf(object metav1.Object) Metadata {
	return Metadata{
		Name: object.GetName(), GenerateName: object.GetGenerateName(), Namespace: object.GetNamespace(), UID: object.GetUID(),
		ResourceVersion: object.GetResourceVersion(), Generation: object.GetGeneration(), DeletionTimestamp: object.GetDeletionTimestamp(),
		Labels: object.GetLabels(), Annotations: object.GetAnnotations(), Owners: object.GetOwnerReferences(),
	}
}

func deploymentReport(d *appsv1.Deployment) (o report) {
	o.Spec = rolloutSpec{Replicas: d.Spec.Replicas, Paused: d.Spec.Paused, MinReadySeconds: d.Spec.MinReadySeconds, ProgressDeadlineSeconds: d.Spec.ProgressDeadlineSeconds}
	o.Spec.Strategy.Type = string(d.Spec.Strategy.Type)
	if rolling := d.Spec.Strategy.RollingUpdate; rolling != nil {
		o.Spec.Strategy.RollingUpdate.Unavailable = rolling.MaxUnavailable
	}
	o.Status = rolloutStatus{Observed: generation(d.Status.ObservedGeneration), Replicas: d.Status.Replicas, UpdatedReplicas: d.Status.UpdatedReplicas, AvailableReplicas: d.Status.AvailableReplicas}
	for _, c := range d.Status.Conditions {
		o.Status.Conditions = append(o.Status.Conditions, condition{Type: string(c.Type), Status: string(c.Status), Reason: c.Reason, LastUpdate: written(c.LastUpdateTime), LastTransition: written(c.LastTransitionTime)})
	}
	return o
}

func statefulSetReport(s *appsv1.StatefulSet) (o report) {
	o.Spec = rolloutSpec{Replicas: s.Spec.Replicas, MinReadySeconds: s.Spec.MinReadySeconds, PodManagementPolicy: string(s.Spec.PodManagementPolicy)}
	o.Spec.UpdateStrategy.Type = string(s.Spec.UpdateStrategy.Type)
	if rolling := s.Spec.UpdateStrategy.RollingUpdate; rolling != nil {
		o.Spec.UpdateStrategy.RollingUpdate.Unavailable = rolling.MaxUnavailable
		if rolling.Partition != nil {
			o.Spec.UpdateStrategy.RollingUpdate.Partition = new(intstr.FromInt32(*rolling.Partition))
		}
	}
	o.Status = rolloutStatus{Observed: generation(s.Status.ObservedGeneration), Replicas: s.Status.Replicas, UpdatedReplicas: s.Status.UpdatedReplicas, AvailableReplicas: s.Status.AvailableReplicas}
	for _, c := range s.Status.Conditions {
		o.Status.Conditions = append(o.Status.Conditions, condition{Type: string(c.Type), Status: string(c.Status), Reason: c.Reason, LastTransition: written(c.LastTransitionTime)})
	}
	return o
}

func daemonSetReport(d *appsv1.DaemonSet) (o report) {
	o.Spec.MinReadySeconds, o.Spec.UpdateStrategy.Type = d.Spec.MinReadySeconds, string(d.Spec.UpdateStrategy.Type)
	if rolling := d.Spec.UpdateStrategy.RollingUpdate; rolling != nil {
		o.Spec.UpdateStrategy.RollingUpdate.Unavailable = rolling.MaxUnavailable
	}
	o.Status = rolloutStatus{Observed: generation(d.Status.ObservedGeneration), DesiredNumberScheduled: d.Status.DesiredNumberScheduled, UpdatedNumberScheduled: d.Status.UpdatedNumberScheduled, NumberAvailable: d.Status.NumberAvailable}
	return o
}

// written is a time as JSON has it, "" for none.
func written(at metav1.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format(time.RFC3339)
}
