package main

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configstamp/configstamp/internal/inspect/fakecluster"
)

// running is a cluster with pods that have old content, and new.
func running(t *testing.T) *fakecluster.Server {
	server := fakecluster.New(t, "testdata/pods.yaml")
	server.Dry = func(_ string, object *unstructured.Unstructured) ([]string, error) {
		if object.GetName() == "halted" {
			return []string{wouldRoll}, nil
		}
		return []string{inStep}, nil
	}
	return server
}

func TestPods(t *testing.T) {
	server := running(t)
	golden(t, "pods", server, "pods")
	golden(t, "pods-of-one", server, "pods", "deployment/payment-api")
	golden(t, "pods-of-a-secret", server, "pods", "secret/db", "-o", "yaml")
	golden(t, "pods-wide", server, "pods", "-A", "-o", "wide")
	golden(t, "pods-json", server, "pods", "sts/db", "-o", "json")
	golden(t, "pods-name", server, "pods", "-o", "name")
	golden(t, "pods-of-nothing", server, "pods", "configmap/nobody")
	golden(t, "pods-too-much", server, "pods", "-A", "secret/db")
}

// Where the webhook says nothing, no stamp is known to be true.
func TestPods_WithoutAnAnswer(t *testing.T) {
	server := running(t)
	server.Dry = nil
	golden(t, "pods-webhook-stopped", server, "pods")
}

// Who may not list pods is told so, and who may not look at Secrets that their times are
// not known.
func TestPods_FewRights(t *testing.T) {
	server := running(t)
	server.Forbid = func(_, resource, _ string) bool { return resource == "pods" }
	out, errOut, code := run(t, server, "pods")
	if code != 1 || out != "" || !strings.Contains(errOut, "error: pods in namespace shop: forbidden, so nothing is known about them") {
		t.Errorf("exit code %d\n%s%s", code, out, errOut)
	}
	server.Forbid = func(_, resource, _ string) bool { return resource == "secrets" }
	golden(t, "pods-few-rights", server, "pods", "deployment/halted")
}
