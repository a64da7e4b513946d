// Package workload holds the table of workload kinds and reads objects of any
// of them: where the pod template is, what it holds, what is on record in it, and
// how far its rollout is.
//
// It must not know what is done with them: no client, no clock, no decision.
// Start with Builtin, the table.
package workload

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Kind is one row of the table of workload kinds. Everything that differs
// between kinds stands here.
type Kind struct {
	Group, Version, Resource string
	// Name is the kind as objects write it, such as Deployment.
	Name string
	// Short is the name that kubectl has for the resource beside those two, such as deploy; "": none.
	Short string
	// Makes is the kind of the objects that stand between one of this kind and its pods, "" where none do.
	// Their names are that of their maker, a dash, and something of their own.
	Makes string
	// Revisions is the kind of group apps in which revisions of the template are kept: ReplicaSet,
	// ControllerRevision, or "" where none are.
	Revisions string
	// Template is the path of the pod template; empty for a Pod, which is one.
	Template []string
	// CreateOnly kinds are stamped when they are created and never again: a
	// template that changes later restarts nothing, or may not change at all.
	CreateOnly bool
	// Immutable reports whether the API server refuses every change of the template, so that an
	// update which drops a stamp would fail.
	Immutable bool
	// Restarts reports whether a change of the template restarts pods; else it
	// counts for later runs.
	Restarts bool
	// Custom kinds may be missing in the cluster, and their objects own
	// what they make, Deployments too.
	Custom bool
	// Owner is the kind of the objects of the group that own what is made, where
	// others of the group own what is not rolled for us; "" is all of them.
	Owner string
	// Borrows reports whether an object may run the pod template of another workload: TemplateOf.
	Borrows bool
	// Progress is the type of the status condition whose lastUpdateTime (else
	// lastTransitionTime) says when the newest revision became current; "" where
	// there is none.
	Progress string
	// Signs is what else says how far a rollout is.
	Signs Signs

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

// String names the kind for users: deployments.apps.
func (k *Kind) String() string {
	return strings.TrimSuffix(k.Resource+"."+k.Group, ".")
}

// Table is the list of kinds that a process serves.
type Table []*Kind

// Builtin is the table of the kinds that every cluster has.
func Builtin() Table {
	template := []string{"spec", "template"}
	return Table{
		// k8s.io/api/apps/v1, DeploymentProgressing; its reasons: k8s.io/kubernetes/pkg/controller/deployment/util
		kind("apps", "deployments", "Deployment", template, false, true).
			short("deploy").making(replicaSet).keeping(replicaSet).
			reporting("Progressing", Signs{Counts: CountsReplicas, Deadline: true, Over: "NewReplicaSetAvailable"}),
		kind("apps", "statefulsets", "StatefulSet", template, false, true).
			short("sts").keeping(controllerRevision).reporting("", Signs{Counts: CountsReplicas, Ordered: true}),
		kind("apps", "daemonsets", "DaemonSet", template, false, true).
			short("ds").keeping(controllerRevision).reporting("", Signs{Counts: CountsNodes}),
		kind("batch", "cronjobs", "CronJob", []string{"spec", "jobTemplate", "spec", "template"}, false, false).
			short("cj").making("Job"),
		kind("batch", "jobs", "Job", template, true, false).immutable(),
		kind("apps", "replicasets", replicaSet, template, true, false).short("rs"),
		kind("", "replicationcontrollers", "ReplicationController", template, true, false).short("rc"),
		kind("", "pods", "Pod", nil, true, false).short("po"),
	}
}

// kind is a row of version v1, as all that every cluster has are.
func kind(group, resource, name string, template []string, createOnly, restarts bool) *Kind {
	return &Kind{Group: group, Version: "v1", Resource: resource, Name: name, Template: template, CreateOnly: createOnly, Restarts: restarts, shape: shapeOf(template)}
}

// Known is the table of custom resources that are served where a cluster has them.
func Known() Table {
	template := []string{"spec", "template"}
	return Table{
		// github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1, RolloutPhase. It is Paused
		// by spec.paused, which is read before it, and by status.pauseConditions. Argo CD's
		// operator and Argo Events own Deployments, and are of the same group.
		custom("argoproj.io", "v1alpha1", "rollouts", "Rollout", template).ownedBy("Rollout").borrowing(true).
			short("ro").making(replicaSet).keeping(replicaSet).
			reporting("Progressing", Signs{Counts: CountsReplicas, Deadline: true, Over: "NewReplicaSetAvailable",
				Phases: map[string]Phase{"Healthy": RolledOut, "Degraded": Failed, "Error": Failed, "Paused": Suspended}}),
		// github.com/openshift/library-go/pkg/apps/appsutil, NewRcAvailableReason
		custom("apps.openshift.io", "v1", "deploymentconfigs", "DeploymentConfig", template).short("dc").making("ReplicationController").
			reporting("Progressing", Signs{Counts: CountsReplicas, Deadline: true, Over: "NewReplicationControllerAvailable", Trigger: "ConfigChange"}),
		// A UnitedDeployment, which is not rolled for us, owns Deployments and StatefulSets.
		custom("apps.kruise.io", "v1alpha1", "clonesets", "CloneSet", template).ownedBy("CloneSet").short("clone").keeping(controllerRevision).reporting("", Signs{Counts: CountsReplicas}),
		custom("serving.knative.dev", "v1", "services", "Service", template).short("ksvc").reporting("Ready", Signs{Deadline: true}),
	}
}

func custom(group, version, resource, name string, template []string) *Kind {
	return &Kind{Group: group, Version: version, Resource: resource, Name: name, Template: template, Restarts: true, Custom: true, shape: shapeOf(template)}
}

// The kinds in which revisions are kept.
const (
	replicaSet         = "ReplicaSet"
	controllerRevision = "ControllerRevision"
)

// short is the row with kubectl's short name.
func (k *Kind) short(name string) *Kind {
	k.Short = name
	return k
}

// making is the row with the kind between its objects and their pods.
func (k *Kind) making(kind string) *Kind {
	k.Makes = kind
	return k
}

// keeping is the row with the kind of its revisions.
func (k *Kind) keeping(kind string) *Kind {
	k.Revisions = kind
	return k
}

// RevisionResource is the resource of group apps in which revisions of the template are kept, "" where none are.
func (k *Kind) RevisionResource() string {
	if k.Revisions == "" {
		return ""
	}
	return strings.ToLower(k.Revisions) + "s"
}

// KeepsRevisions reports whether the kind is a built-in one that keeps revisions of its template: an undo returns to
// one of them, and a workload that is created again adopts them.
func (k *Kind) KeepsRevisions() bool { return k.Revisions != "" && !k.Custom }

// Pins reports whether pods of the kind can be pinned: each starts from a revision whose template keeps its annotations.
// A CloneSet writes new annotations into pods that run.
func (k *Kind) Pins() bool { return k.KeepsRevisions() || k.Revisions != "" && k.Makes == k.Revisions }

// CopiesAnnotations reports whether the kind's controller copies an object's own annotations to its
// revisions, as they change.
func (k *Kind) CopiesAnnotations() bool { return k.Revisions == replicaSet }

// reporting is the row with what says how far its rollouts are.
func (k *Kind) reporting(progress string, signs Signs) *Kind {
	k.Progress, k.Signs = progress, signs
	return k
}

// immutable is the row of a kind whose template is immutable.
func (k *Kind) immutable() *Kind {
	k.Immutable = true
	return k
}

// ownedBy is the row with the kind of the owners of what is made.
func (k *Kind) ownedBy(owner string) *Kind {
	k.Owner = owner
	return k
}

// borrowing is the row with whether its objects may run the template of another workload.
func (k *Kind) borrowing(may bool) *Kind {
	k.Borrows = may
	return k
}

// Named is the kind under the name that the cluster gives it.
func (k *Kind) Named(name string) *Kind {
	named := *k
	named.Name = name
	return &named
}

// ParseKind reads a custom kind from
// "group/version/resource=path.to.template[,rollout=Condition]", such as
// "argoproj.io/v1alpha1/rollouts=spec.template,rollout=Progressing"; the condition
// is the kind's Progress: True says that the newest revision is rolled out, False
// that it failed. A resource of Known keeps what its row says of rollouts, unless
// another condition is asked for. Its objects' own name of the kind is not known
// yet: it goes by the resource's.
func ParseKind(text string) (*Kind, error) {
	const want = "want group/version/resource=path.to.template[,rollout=Condition], such as argoproj.io/v1alpha1/rollouts=spec.template,rollout=Progressing"
	row, option, hasOption := strings.Cut(text, ",")
	progress, isRollout := strings.CutPrefix(option, "rollout=")
	if hasOption && (!isRollout || len(validation.IsQualifiedName(progress)) > 0) {
		return nil, fmt.Errorf("reading workload kind %q: %q does not name a status condition: %s", text, option, want)
	}
	address, path, found := strings.Cut(row, "=")
	parts := strings.Split(address, "/")
	if !found || len(parts) != 3 {
		return nil, fmt.Errorf("reading workload kind %q: %s", text, want)
	}
	template := strings.Split(path, ".")
	switch {
	case len(validation.IsDNS1123Subdomain(parts[0])) > 0 || !strings.Contains(parts[0], "."):
		return nil, fmt.Errorf("reading workload kind %q: %q is not a group of custom resources: %s", text, parts[0], want)
	case len(validation.IsDNS1035Label(parts[1])) > 0:
		return nil, fmt.Errorf("reading workload kind %q: %q is not a version: %s", text, parts[1], want)
	case len(validation.IsDNS1035Label(parts[2])) > 0:
		return nil, fmt.Errorf("reading workload kind %q: %q is not a resource (plural, lower case): %s", text, parts[2], want)
	case slices.ContainsFunc(template, func(step string) bool { return !fieldName.MatchString(step) }):
		return nil, fmt.Errorf("reading workload kind %q: %q is not a path of a pod template: %s", text, path, want)
	case template[0] == "metadata" || template[0] == "status":
		return nil, fmt.Errorf("reading workload kind %q: a pod template cannot be in %s", text, template[0])
	}
	kind := custom(parts[0], parts[1], parts[2], parts[2], template)
	known, found := Known().Find(kind.Group, kind.Resource)
	if found {
		kind.Short, kind.Makes, kind.Revisions = known.Short, known.Makes, known.Revisions
	}
	if found && (!hasOption || progress == known.Progress) {
		return kind.ownedBy(known.Owner).borrowing(known.Borrows).reporting(known.Progress, known.Signs), nil
	}
	return kind.reporting(progress, Signs{}), nil
}

// fieldName is what a field of a custom resource may be called here.
var fieldName = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9_-]*$`)

// With is the table with further kinds, which take the place of those of the
// same group and resource.
func (t Table) With(kinds ...*Kind) Table {
	table := slices.Clone(t)
	for _, kind := range kinds {
		table = slices.DeleteFunc(table, func(k *Kind) bool { return k.Group == kind.Group && k.Resource == kind.Resource })
		table = append(table, kind)
	}
	return table
}

// Rolls reports whether what an object owns is rolled by a custom kind of its group.
func (t Table) Rolls(owner schema.GroupKind) bool {
	return slices.ContainsFunc(t, func(k *Kind) bool {
		return k.Custom && k.Group == owner.Group && (k.Owner == "" || k.Owner == owner.Kind)
	})
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

// made reports whether objects of a kind may stand between an object of the table and its pods.
func (t Table) made(kind string) bool {
	return slices.ContainsFunc(t, func(k *Kind) bool { return k.Makes == kind })
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
