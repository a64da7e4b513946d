// Package workload holds the table of workload kinds and reads objects of any
// of them: where the pod template is, what it holds, what is on record in it.
//
// It must not know what is done with them: no client, no clock, no decision.
// Start with Builtin, the table.
package workload

import (
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind is one row of the table of workload kinds. Everything that differs
// between kinds stands here.
type Kind struct {
	Group, Version, Resource string
	// Name is the kind as objects write it, such as Deployment.
	Name string
	// Template is the path of the pod template; empty for a Pod, which is one.
	Template []string
	// CreateOnly kinds are stamped when they are created and never again: a
	// template that changes later restarts nothing, or may not change at all.
	CreateOnly bool
	// Restarts tells that a change of the template restarts pods; else it
	// counts for later runs.
	Restarts bool

	shape reflect.Type
}

// GroupVersionResource addresses the kind in the API.
func (k *Kind) GroupVersionResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: k.Group, Version: k.Version, Resource: k.Resource}
}

// GroupVersionKind names the kind in events.
func (k *Kind) GroupVersionKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: k.Group, Version: k.Version, Kind: k.Name}
}

// String names the kind for people: deployments.apps.
func (k *Kind) String() string {
	return strings.TrimSuffix(k.Resource+"."+k.Group, ".")
}

// Table is the list of kinds that a process serves.
type Table []*Kind

// Builtin is the table of the kinds that every cluster has.
func Builtin() Table {
	template := []string{"spec", "template"}
	return Table{
		kind("apps", "deployments", "Deployment", template, false, true),
		kind("apps", "statefulsets", "StatefulSet", template, false, true),
		kind("apps", "daemonsets", "DaemonSet", template, false, true),
		kind("batch", "cronjobs", "CronJob", []string{"spec", "jobTemplate", "spec", "template"}, false, false),
		kind("batch", "jobs", "Job", template, true, false),
		kind("apps", "replicasets", "ReplicaSet", template, true, false),
		kind("", "replicationcontrollers", "ReplicationController", template, true, false),
		kind("", "pods", "Pod", nil, true, false),
	}
}

// kind is a row of version v1, as all that every cluster has are.
func kind(group, resource, name string, template []string, createOnly, restarts bool) *Kind {
	return &Kind{Group: group, Version: "v1", Resource: resource, Name: name, Template: template, CreateOnly: createOnly, Restarts: restarts, shape: shapeOf(template)}
}

// Find looks a kind up by group and resource; versions of one resource share
// a row.
func (t Table) Find(group, resource string) (*Kind, bool) {
	for _, kind := range t {
		if kind.Group == group && kind.Resource == resource {
			return kind, true
		}
	}
	return nil, false
}

// Readmitted are the kinds that the controller looks after: those that are
// stamped again after their creation.
func (t Table) Readmitted() Table {
	var kinds Table
	for _, kind := range t {
		if !kind.CreateOnly {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}
