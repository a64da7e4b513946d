package seen

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/workload"
)

// Workload is one workload, as it was read.
type Workload struct {
	workload.Ref
	Object *workload.Object
	// References are all places of the template that name a source; Fault is why the
	// template could not be read, "" if it could.
	References []checksum.Reference
	Fault      string
	// Records are what is on record about the content that its pods started with.
	Records checksum.Records
	Foreign *checksum.Foreign
	// Owned tells that its owner makes its template.
	Owned  bool
	Status workload.Status
	// Created is metadata.creationTimestamp. Written is when its template was last
	// written, as far as managedFields tell, else zero.
	Created, Written time.Time
	// Selector finds its pods, as a label selector; "" when it has none.
	Selector string
	// Finalizers are metadata.finalizers.
	Finalizers []string
	// Writers are its managedFields that own fields of the object, newest first.
	Writers []Write
	// Paused is who wrote its annotation pause last, zero when that is not known.
	Paused Write
}

// Text names a workload as kubectl does: deployment/web-app.
func (w *Workload) Text() string { return Text(w.Ref) }

// Text names an object as kubectl does, with its group where the kind is custom:
// deployment/web-app, rollout.argoproj.io/web-app.
func Text(ref workload.Ref) string { return ref.Text() }

// Write is one entry of metadata.managedFields: who wrote last, and when.
type Write struct {
	// Manager is the field manager, such as kubectl-edit.
	Manager string `json:"manager"`
	// At is when it wrote last, UTC; zero when that is not known.
	At time.Time `json:"at"`
	// Content tells that the entry owns something of what containers read (data,
	// binaryData). Of workloads it tells that it owns something of the template.
	Content bool `json:"content"`
}

// Revision is one revision of a workload: a ReplicaSet or a ControllerRevision.
type Revision struct {
	// Name is the object's, Number its revision (deployment.kubernetes.io/revision, or
	// the field revision).
	Name   string
	Number int64
	// Owner is the workload's UID.
	Owner types.UID
	// Created is when it was first made. A revision that came back was made earlier than
	// those that it took over from.
	Created time.Time
	// Stamps are those of its template, Pins which snapshots its pods read.
	Stamps map[string]string
	Pins   checksum.Pins
	// Restarted is what kubectl rollout restart wrote into it (RFC 3339), "" if nothing.
	Restarted string
	// Cause is kubernetes.io/change-cause.
	Cause string
	// Images are the containers' images, by container.
	Images map[string]string
	// Template is a hash of the template without our stamps, Restarted, and what its
	// controller adds.
	Template string
	// Replicas and Ready are how many pods it has; both 0 for a ControllerRevision.
	Replicas, Ready int32
}

// Pod is one pod of a workload.
type Pod struct {
	workload.Pod
	Namespace string
	// Owner is its controller's UID, OwnerKind and OwnerName are what that is; "" when it
	// has none.
	Owner                types.UID
	OwnerKind, OwnerName string
	// Pinned are the snapshots that it reads, by their sources; see checksum.PinnedAnnotation.
	Pinned map[checksum.Source]string
	// Restarts is how often its containers were restarted, all together.
	Restarts int
	// Revision is its pod-template-hash or controller-revision-hash.
	Revision string
}

// Event is one event of an object.
type Event struct {
	// Kind, Namespace and Name are the object's. About is its fieldPath, in which
	// configstamp names the sources that the event is about: "configmap/a and secret/b".
	Kind, Namespace, Name, About string
	// Reason is CamelCase, such as ConfigChanged; Message is for people.
	Reason, Message string
	// Warning tells its type.
	Warning bool
	// First and Last are when it was seen; they are equal for most.
	First, Last time.Time
	Count       int32
	// By is who reported it: configstamp-controller, deployment-controller.
	By string
}
