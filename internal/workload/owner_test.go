package workload_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configstamp/configstamp/internal/workload"
)

func TestTable_Makers(t *testing.T) {
	table := workload.Builtin().With(workload.Known()...)
	for sentence, c := range map[string]struct {
		version, kind, name, hash string
		want                      []string
	}{
		"a ReplicaSet of a Deployment, or of a Rollout": {"apps/v1", "ReplicaSet", "web-7d9", "7d9", []string{"Deployment web", "ReplicaSet web-7d9", "Rollout web"}},
		"a ReplicaSet of its own":                       {"apps/v1", "ReplicaSet", "web-7d9", "", []string{"ReplicaSet web-7d9"}},
		"a StatefulSet":                                 {"apps/v1", "StatefulSet", "db-0", "", []string{"StatefulSet db-0"}},
		"a Job of a CronJob":                            {"batch/v1", "Job", "night-2901", "", []string{"CronJob night", "Job night-2901"}},
		"a CloneSet":                                    {"apps.kruise.io/v1alpha1", "CloneSet", "web", "", []string{"CloneSet web"}},
		"a DeploymentConfig's":                          {"v1", "ReplicationController", "web-3", "", []string{"ReplicationController web-3", "DeploymentConfig web"}},
		"somebody else's ReplicaSet":                    {"apps.example.com/v1", "StatefulSet", "db", "", nil},
	} {
		t.Run(sentence, func(t *testing.T) {
			var got []string
			for _, maker := range table.Makers(metav1.OwnerReference{APIVersion: c.version, Kind: c.kind, Name: c.name}, c.hash) {
				got = append(got, maker.People())
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// Pods of others may have the labels of a workload.
func TestTable_MadeBy(t *testing.T) {
	table := workload.Builtin().With(workload.Known()...)
	find := func(group, resource string) workload.Ref {
		kind, _ := table.Find(group, resource)
		return workload.Ref{Kind: kind, Namespace: "shop", Name: "web"}
	}
	owner := func(version, kind, name string) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: version, Kind: kind, Name: name, UID: "other"}
	}
	for sentence, c := range map[string]struct {
		of   workload.Ref
		pod  workload.Pod
		want bool
	}{
		"its own":                   {find("apps", "statefulsets"), workload.Pod{Owner: metav1.OwnerReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web", UID: "it"}}, true},
		"its ReplicaSet's":          {find("apps", "deployments"), workload.Pod{Owner: owner("apps/v1", "ReplicaSet", "web-7d9"), Hash: "7d9"}, true},
		"another Deployment's":      {find("apps", "deployments"), workload.Pod{Owner: owner("apps/v1", "ReplicaSet", "web-app-7d9"), Hash: "7d9"}, false},
		"a ReplicaSet's of its own": {find("apps", "deployments"), workload.Pod{Owner: owner("apps/v1", "ReplicaSet", "web-7d9")}, false},
		"a Job's":                   {find("apps", "deployments"), workload.Pod{Owner: owner("batch/v1", "Job", "web-7d9")}, false},
		"a StatefulSet's":           {find("apps", "deployments"), workload.Pod{Owner: owner("apps/v1", "StatefulSet", "web")}, false},
		"a Rollout's":               {find("argoproj.io", "rollouts"), workload.Pod{Owner: owner("apps/v1", "ReplicaSet", "web-7d9"), Hash: "7d9"}, true},
		"a DeploymentConfig's":      {find("apps.openshift.io", "deploymentconfigs"), workload.Pod{Owner: owner("v1", "ReplicationController", "web-3")}, true},
		"another Rollout's":         {find("argoproj.io", "rollouts"), workload.Pod{Owner: owner("apps/v1", "ReplicaSet", "web-app-7d9"), Hash: "7d9"}, false},
		"a Deployment's, which a custom resource may have made": {find("serving.knative.dev", "services"), workload.Pod{Owner: owner("apps/v1", "ReplicaSet", "web-1-7d9"), Hash: "7d9"}, true},
		"nobody's yet":                   {find("apps", "deployments"), workload.Pod{}, true},
		"of what may stand between them": {find("apps", "deployments"), workload.Pod{Owner: owner("example.com/v1", "PodSet", "x")}, true},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := table.MadeBy(c.of, "it", &c.pod); got != c.want {
				t.Errorf("it counts: %t, want %t", got, c.want)
			}
		})
	}
}
