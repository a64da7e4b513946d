package seen

import (
	"time"

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
