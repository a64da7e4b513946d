// Package argocd asks Argo CD's own libraries what they make of deploy/gitops/argocd-health.yaml. Argo
// CD itself uses it in package neighbours.
package argocd

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/argoproj/argo-cd/gitops-engine/v3/pkg/health"
	"github.com/argoproj/argo-cd/v3/util/lua"
	"github.com/argoproj/argo-cd/v3/util/settings"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/yaml"
)

const namespace = "argocd"

// checks are what Argo CD reads out of the file, as it reads its argocd-cm.
func checks(t *testing.T) lua.ResourceHealthOverrides {
	t.Helper()
	text, err := os.ReadFile("../../../deploy/gitops/argocd-health.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var fragment corev1.ConfigMap
	if err := yaml.UnmarshalStrict(text, &fragment); err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{"app.kubernetes.io/part-of": "argocd"}
	fragment.Namespace, fragment.Labels = namespace, labels
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "argocd-secret", Labels: labels}}
	overrides, err := settings.NewSettingsManager(t.Context(), fake.NewClientset(&fragment, secret), namespace).GetResourceOverrides()
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet"} {
		if overrides["apps/"+kind].HealthLua == "" {
			t.Fatalf("Argo CD finds no check of a %s", kind)
		}
	}
	return overrides
}

// The parts of objects. Times are seconds ago.
const (
	stamp   = `configmap.configstamp.dev/setting: "v1:47c2bf08:all:ba08a8da45ba48af08c88ce75a9e3cd2"`
	rolls   = `updatedReplicas: 1, replicas: 3, readyReplicas: 2, availableReplicas: 2`
	done    = `updatedReplicas: 2, replicas: 2, readyReplicas: 2, availableReplicas: 2`
	lost    = `updatedReplicas: 2, replicas: 2, readyReplicas: 1, availableReplicas: 1`
	another = `currentRevision: a, updateRevision: b`
	same    = `currentRevision: b, updateRevision: b`
)

func deployment(annotation, spec, status, reason string, ago int) string {
	return fmt.Sprintf(`{kind: Deployment, spec: {replicas: 2, %s template: {metadata: {annotations: {%s}}}},
status: {observedGeneration: 3, %s, conditions: [{type: Available, status: "True"}, {type: Progressing, status: "True", reason: %s, lastUpdateTime: %q}]}}`,
		spec, annotation, status, reason, stampOf(ago))
}

func other(kind, annotation, spec, status string, ago int) string {
	return fmt.Sprintf(`{kind: %s, metadata: {managedFields: [{manager: argocd-controller, time: %q}, {manager: kube-controller-manager, subresource: status, time: %q}]},
spec: {replicas: 2, %s template: {metadata: {annotations: {%s}}}}, status: {observedGeneration: 3, %s}}`,
		kind, stampOf(5), stampOf(ago), spec, annotation, status)
}

func stampOf(ago int) string {
	return time.Now().Add(-time.Duration(ago) * time.Second).UTC().Format(time.RFC3339)
}

func TestHealth(t *testing.T) {
	const secret = `secret.configstamp.dev/db: "v1:absent"`
	const mesh, rolling = `configmap.configstamp.device/x: "1", "configmap.configstamp.dev": "1", sidecar: "2"`, "updateStrategy: {type: RollingUpdate},"
	type state = health.HealthStatusCode
	const degraded, progressing, healthy, suspended = health.HealthStatusDegraded, health.HealthStatusProgressing, health.HealthStatusHealthy, health.HealthStatusSuspended
	for name, test := range map[string]struct {
		object string
		want   state
	}{
		"a Deployment that stands still":                      {deployment(stamp, "", rolls, "ReplicaSetUpdated", 70), degraded},
		"a Deployment that stands still, stamped by a Secret": {deployment(secret, "", rolls, "ReplicaSetUpdated", 70), degraded},
		"a Deployment that rolls":                             {deployment(stamp, "", rolls, "ReplicaSetUpdated", 40), progressing},
		"a Deployment without stamps that stands still":       {deployment(mesh, "", rolls, "ReplicaSetUpdated", 700), progressing},
		"a Deployment that is paused":                         {deployment(stamp, "paused: true,", rolls, "DeploymentPaused", 700), suspended},
		"a Deployment that is done":                           {deployment(stamp, "", done, "NewReplicaSetAvailable", 7000), healthy},
		"a Deployment that has lost a Pod":                    {deployment(stamp, "", lost, "NewReplicaSetAvailable", 7000), progressing},
		"a Deployment that its own controller gave up":        {deployment(stamp, "", rolls, "ProgressDeadlineExceeded", 5), degraded},
		"a Deployment that nobody has looked at":              {deployment(stamp, "", strings.Replace(rolls, "updated", "observedGeneration: 2, updated", 1), "ReplicaSetUpdated", 700), progressing},

		"a StatefulSet that stands still":                {other("StatefulSet", stamp, rolling, lost+", "+another, 70), degraded},
		"a StatefulSet that rolls":                       {other("StatefulSet", stamp, rolling, lost+", "+another, 40), progressing},
		"a StatefulSet without stamps that stands still": {other("StatefulSet", mesh, rolling, lost+", "+another, 700), progressing},
		"a StatefulSet that is done":                     {other("StatefulSet", stamp, rolling, done+", "+same, 7000), healthy},
		"a StatefulSet that has lost a Pod":              {other("StatefulSet", stamp, rolling, lost+", "+same, 7000), progressing},
		"a StatefulSet that waits for deletions":         {other("StatefulSet", stamp, "updateStrategy: {type: OnDelete},", done+", "+another, 7000), healthy},
		"a StatefulSet that is rolled in part": {
			other("StatefulSet", stamp, "updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 1}},", done+", "+another, 7000), healthy,
		},

		"a DaemonSet that stands still":                {other("DaemonSet", stamp, rolling, "desiredNumberScheduled: 3, updatedNumberScheduled: 1, numberAvailable: 2", 70), degraded},
		"a DaemonSet that rolls":                       {other("DaemonSet", stamp, rolling, "desiredNumberScheduled: 3, updatedNumberScheduled: 1, numberAvailable: 2", 40), progressing},
		"a DaemonSet without stamps that stands still": {other("DaemonSet", mesh, rolling, "desiredNumberScheduled: 3, updatedNumberScheduled: 1, numberAvailable: 2", 700), progressing},
		"a DaemonSet that is done":                     {other("DaemonSet", stamp, rolling, "desiredNumberScheduled: 3, updatedNumberScheduled: 3, numberAvailable: 3", 7000), healthy},
		"a DaemonSet on a lost node":                   {other("DaemonSet", stamp, rolling, "desiredNumberScheduled: 3, updatedNumberScheduled: 3, numberAvailable: 2", 7000), progressing},
	} {
		for _, zone := range []*time.Location{time.UTC, time.FixedZone("east", 9*3600), time.FixedZone("west", -7*3600)} {
			t.Run(name+" "+zone.String(), func(t *testing.T) {
				local := time.Local
				time.Local = zone
				defer func() { time.Local = local }()
				found, err := health.GetResourceHealth(object(t, test.object), checks(t))
				if err != nil {
					t.Fatal(err)
				}
				if found == nil || found.Status != test.want {
					t.Fatalf("Argo CD says %+v, want %s", found, test.want)
				}
				if ours := strings.Contains(found.Message, "kubectl configstamp status -n shop"); ours != strings.Contains(name, "stands still") && test.want == degraded {
					t.Errorf("the message is %q", found.Message)
				}
			})
		}
	}
}

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	found := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &found.Object); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	found.SetAPIVersion("apps/v1")
	found.SetName("web")
	found.SetNamespace("shop")
	found.SetGeneration(3)
	return found
}
