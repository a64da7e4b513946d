package main

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configstamp/configstamp/e2e/fakecluster"
)

const (
	stampOfWeb = "configmap.configstamp.dev/web"
	newStamp   = "v1:aaaaaaaa:all:22222222222222222222222222222222"
)

// ordered is a cluster with a webhook that stamps, records, and answers dry runs.
func ordered(t *testing.T) *fakecluster.Server {
	t.Helper()
	server := fakecluster.New(t, "testdata/orders.yaml")
	server.Now = atThree()
	server.Dry = func(_ string, object *unstructured.Unstructured) ([]string, error) {
		stamps, _, _ := unstructured.NestedStringMap(object.Object, "spec", "template", "metadata", "annotations")
		name := object.GetName()
		_, recorded := object.GetAnnotations()["configstamp.dev/baseline"]
		switch {
		case name == "in-step", stamps[stampOfWeb] == newStamp, recorded:
			return []string{inStep}, nil
		case object.GetAnnotations()["configstamp.dev/mode"] == "observe":
			return []string{"configstamp: observed: content has changed, but mode is observe; nothing would restart"}, nil
		case name == "missing":
			return []string{"configstamp: missing: a required source or key does not exist; nothing restarts until it does"}, nil
		case len(stamps) == 0:
			return []string{"configstamp: would-record: the present content would be recorded; nothing would restart"}, nil
		}
		return []string{wouldRoll}, unstructured.SetNestedField(object.Object, newStamp, "spec", "template", "metadata", "annotations", stampOfWeb)
	}
	server.Admit = func(manager string, object *unstructured.Unstructured) ([]string, error) {
		restarted, _, _ := unstructured.NestedString(object.Object, "spec", "template", "metadata", "annotations", "kubectl.kubernetes.io/restartedAt")
		switch {
		case object.GetKind() != "Deployment":
			return nil, nil
		case object.GetName() == "meddled":
			return nil, unstructured.SetNestedField(object.Object, "sidecar", "spec", "template", "spec", "serviceAccountName")
		case manager == "configstamp-record":
			annotations := object.GetAnnotations()
			annotations["configstamp.dev/baseline"] = `{"configmap/web":"` + newStamp + `"}`
			object.SetAnnotations(annotations)
		case manager == "configstamp", restarted != "":
			return nil, unstructured.SetNestedField(object.Object, newStamp, "spec", "template", "metadata", "annotations", stampOfWeb)
		}
		return nil, nil
	}
	return server
}

func TestPause(t *testing.T) {
	server := ordered(t)
	golden(t, "pause-client", server, "pause", "namespace/shop", "--for", "2h", "--reason", "INC-42", "--dry-run=client")
	golden(t, "pause-server", server, "pause", "namespace/shop", "--for", "2h", "--reason", "INC-42", "--dry-run=server")
	if writes := server.Writes(); len(writes) > 0 {
		t.Errorf("a dry run has written %v", writes)
	}
	golden(t, "pause-namespace", server, "pause", "namespace/shop", "--for", "2h", "--reason", "INC-42")
	golden(t, "pause-workload", server, "pause", "deployment/stale")
	golden(t, "pause-over-false", server, "pause", "deploy", "goes-on")
	golden(t, "pause-paused", server, "pause", "ns/billing", "--for", "2h")
	golden(t, "pause-all", server, "pause", "-A", "--reason", "INC-43")
	golden(t, "unpause-namespace-json", server, "unpause", "namespace/shop", "--dry-run=server", "-o", "json")
	golden(t, "unpause-all", server, "unpause", "-A")
	golden(t, "unpause-workload", server, "unpause", "deployment/goes-on")
	golden(t, "unpause-twice", server, "unpause", "namespace/shop")
	golden(t, "unpause-all-again", server, "unpause", "-A")
	golden(t, "pause-nothing", server, "pause")
	golden(t, "pause-too-much", server, "pause", "deployment/stale", "-A")
}

// What Git says of a pause, its tool writes again.
const pausesInGit = `
apiVersion: v1
kind: Namespace
metadata:
  name: GIT
  labels: {configstamp.dev/inject: enabled}
  annotations: {configstamp.dev/pause: "false"}
  managedFields:
  - manager: kustomize-controller
    operation: Apply
    time: "2026-11-22T01:00:00Z"
    fieldsV1: {"f:metadata": {"f:annotations": {"f:configstamp.dev/pause": {}}}}
`

func TestOrders_WarnOfWhoMayWriteItAgain(t *testing.T) {
	server := ordered(t)
	for _, name := range []string{"git-a", "git-b", "git-c", "git-d", "git-e"} {
		server.Apply(t, strings.ReplaceAll(pausesInGit, "GIT", name))
	}
	golden(t, "pause-in-git", server, "pause", "namespace/git-a", "--dry-run=server")
	golden(t, "pause-in-git-json", server, "pause", "namespace/git-a", "-o", "json", "--dry-run=client")
	golden(t, "pause-in-git-all", server, "pause", "-A", "-o", "name")
	paused := server.Get(t, "/api/v1/namespaces/git-b")
	paused.SetAnnotations(map[string]string{"configstamp.dev/pause": "true"})
	server.Put(paused)
	golden(t, "unpause-in-git", server, "unpause", "namespace/git-b")
	server.Apply(t, strings.NewReplacer("kind: Namespace", "kind: ConfigMap", "name: GIT", "name: applied\n  namespace: shop", "f:configstamp.dev/pause", "f:configstamp.dev/resume").Replace(pausesInGit))
	golden(t, "resume-in-git", server, "resume", "configmap/applied")
}

// After pause and unpause everything is as it was.
func TestUnpause_LeavesWhatPauseFound(t *testing.T) {
	for path, target := range map[string]string{
		"/api/v1/namespaces/shop":                           "namespace/shop",
		"/apis/apps/v1/namespaces/shop/deployments/goes-on": "deployment/goes-on",
		"/apis/apps/v1/namespaces/shop/deployments/stale":   "deployment/stale",
		"/apis/apps/v1/namespaces/shop/deployments/in-step": "deployment/in-step",
	} {
		server := ordered(t)
		before := server.Get(t, path).GetAnnotations()
		run(t, server, "pause", target, "--for=1h")
		run(t, server, "pause", target, "--for=2h") // the second is its own predecessor
		run(t, server, "pause", target, "--for=1h") // and ends no sooner by this
		if value := server.Get(t, path).GetAnnotations()["configstamp.dev/pause"]; value != "2026-11-22T05:00:00Z" {
			t.Errorf("%s: paused until %q", target, value)
		}
		if out, errOut, code := run(t, server, "unpause", target); code != 0 {
			t.Errorf("%s: %s%s", target, out, errOut)
		}
		after := server.Get(t, path).GetAnnotations()
		if len(after) != len(before) || after["configstamp.dev/pause"] != before["configstamp.dev/pause"] {
			t.Errorf("%s: it was %v, and is %v", target, before, after)
		}
	}
}

// What somebody else has written since is not taken away.
func TestUnpause_LeavesWhatOthersWrote(t *testing.T) {
	server := ordered(t)
	const path = "/api/v1/namespaces/shop"
	run(t, server, "pause", "namespace/shop", "--for=1h")
	shop := server.Get(t, path)
	annotations := shop.GetAnnotations()
	annotations["configstamp.dev/pause"] = "true"
	shop.SetAnnotations(annotations)
	server.Put(shop)
	out, errOut, _ := run(t, server, "unpause", "namespace/shop")
	if after := server.Get(t, path).GetAnnotations(); after["configstamp.dev/pause"] != "true" || !strings.Contains(out, "kept") {
		t.Errorf("it is %v:\n%s%s", after, out, errOut)
	}
}

// Two who write at once: the second decides again, on what the first wrote.
func TestPause_DecidesAgainAfterAConflict(t *testing.T) {
	server := ordered(t)
	const path = "/api/v1/namespaces/shop"
	raced := false
	server.Intercept = func(resource, _ string) {
		if resource == "namespaces" && len(server.Writes()) == 0 && !raced {
			if requests := server.Requests(); slices.ContainsFunc(requests, func(r string) bool { return strings.HasPrefix(r, "PATCH "+path) }) {
				raced = true
				shop := server.Get(t, path)
				shop.SetAnnotations(map[string]string{"configstamp.dev/pause": "true"})
				server.Put(shop)
			}
		}
	}
	out, errOut, code := run(t, server, "pause", "namespace/shop", "--for=1h")
	if value := server.Get(t, path).GetAnnotations()["configstamp.dev/pause"]; !raced || value != "true" || !strings.Contains(out, "unchanged") {
		t.Errorf("exit code %d, raced %v, it is %q:\n%s%s", code, raced, value, out, errOut)
	}
}

func TestRelease(t *testing.T) {
	server := ordered(t)
	golden(t, "resume-client", server, "resume", "cm/web", "--dry-run=client", "-o", "jsonpath={.metadata.annotations}")
	golden(t, "resume", server, "resume", "configmap/web")
	golden(t, "resume-nothing", server, "resume", "configmap/wep")
	writes := server.Writes()
	if len(writes) != 1 || !strings.Contains(writes[0].Body, `"configstamp.dev/resume":"2026-11-22T03:00:01Z"`) || writes[0].Manager != "configstamp-order" {
		t.Errorf("it wrote %v, want the API server's time", writes)
	}
}

// The time is the API server's: this machine's may be wrong.
func TestRelease_TakesTheTimeOfTheServer(t *testing.T) {
	server := ordered(t)
	server.Now = atThree().Add(-7 * time.Hour)
	run(t, server, "resume", "configmap/web")
	if writes := server.Writes(); len(writes) != 1 || !strings.Contains(writes[0].Body, "2026-11-21T20:00:01Z") {
		t.Errorf("it wrote %v", writes)
	}
}

func TestRoll(t *testing.T) {
	server := ordered(t)
	golden(t, "roll-client", server, "roll", "deployment/stale", "--dry-run=client")
	golden(t, "roll-server", server, "roll", "deployment/observed", "--dry-run=server")
	if writes := server.Writes(); len(writes) > 0 {
		t.Errorf("a dry run has written %v", writes)
	}
	run(t, server, "pause", "namespace/shop", "--for=2h")
	golden(t, "roll-paused", server, "roll", "deployment/stale")
	run(t, server, "unpause", "namespace/shop")
	golden(t, "roll-halted", server, "roll", "deploy/halted")
	golden(t, "roll-halted-again", server, "roll", "deploy/halted")
	golden(t, "roll-observed", server, "roll", "deployment/observed", "-o", "jsonpath={.spec.template.metadata.annotations}")
	golden(t, "roll-missing", server, "roll", "deployment/missing")
	golden(t, "roll-bare", server, "roll", "deployment/bare")
	golden(t, "roll-opted-out", server, "roll", "deployment/opted-out")
	for _, write := range server.Writes() {
		if strings.Contains(write.Path, "deployments") && write.Manager == "configstamp" && write.Body != "{}" {
			t.Errorf("an order wrote %s", write.Body)
		}
	}
}

// Without an answer of the webhook no order is sent.
func TestRoll_WithoutAnAnswerNothingIsSent(t *testing.T) {
	for name, hinder := range map[string]func(*fakecluster.Server){
		"webhook stopped": func(s *fakecluster.Server) { s.Dry = nil },
		"dry runs refused": func(s *fakecluster.Server) {
			s.Dry = func(string, *unstructured.Unstructured) ([]string, error) {
				return nil, errors.New(`admission webhook "policy.example.com" does not support dry run`)
			}
		},
		"no right to patch": func(s *fakecluster.Server) { s.Forbid = func(verb, _, _ string) bool { return verb == "patch" } },
	} {
		server := ordered(t)
		hinder(server)
		out, errOut, code := run(t, server, "roll", "deployment/stale")
		if writes := server.Writes(); code != 1 || len(writes) > 0 || strings.Contains(out, "rolled") {
			t.Errorf("%s: exit code %d, it wrote %v:\n%s%s", name, code, writes, out, errOut)
		}
	}
}

func TestOrders_WithFewRights(t *testing.T) {
	server := ordered(t)
	server.Forbid = func(_, resource, _ string) bool { return resource == "namespaces" }
	golden(t, "pause-no-right", server, "pause", "namespace/shop")
	golden(t, "pause-all-no-right", server, "pause", "-A")
}
