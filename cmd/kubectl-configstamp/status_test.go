package main

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configstamp/configstamp/internal/inspect/fakecluster"
)

const (
	inStep    = "configstamp: in-step: every checksum on record is true; nothing would change"
	wouldRoll = "configstamp: would-roll: the workload would be stamped and roll out; an order by this field manager does not wait for pause, window or min-interval"
)

// incident is a cluster in which an edit has gone wrong.
func incident(t *testing.T) *fakecluster.Server {
	server := fakecluster.New(t, "testdata/incident.yaml")
	server.Dry = func(_ string, object *unstructured.Unstructured) ([]string, error) {
		switch object.GetName() {
		case "failed", "in-step":
			return []string{inStep}, nil
		case "mislabelled":
			t.Error("what is not served was asked for")
		}
		return []string{"configstamp: something else", wouldRoll}, nil
	}
	return server
}

func TestStatus(t *testing.T) {
	server := incident(t)
	golden(t, "status", server, "status")
	golden(t, "status-all-namespaces-json", server, "status", "-A", "-o", "json")
	golden(t, "status-of-one", server, "status", "deployment/paused")
	golden(t, "status-wide", server, "status", "-o", "wide")
}

func TestStatus_NothingUnderWay(t *testing.T) {
	golden(t, "status-nothing", incident(t), "status", "deploy", "in-step")
}

// Nothing is in step but by the webhook's own word.
func TestStatus_WithoutAnAnswerNothingIsInStep(t *testing.T) {
	for name, hinder := range map[string]func(*fakecluster.Server){
		"webhook-stopped": func(s *fakecluster.Server) { s.Dry = nil },
		"dry-runs-refused": func(s *fakecluster.Server) {
			s.Dry = func(string, *unstructured.Unstructured) ([]string, error) {
				return nil, errors.New(`admission webhook "policy.example.com" does not support dry run`)
			}
		},
		"no-right-to-patch": func(s *fakecluster.Server) {
			s.Forbid = func(verb, resource, _ string) bool { return verb == "patch" || resource == "secrets" }
		},
	} {
		server := incident(t)
		hinder(server)
		golden(t, "status-"+name, server, "status")
		out, _, _ := run(t, server, "status", "-o", "json")
		if strings.Contains(out, `"in-step"`) || strings.Contains(out, `"done":`) && !strings.Contains(out, `"done": 0`) {
			t.Errorf("%s: something is in step:\n%s", name, out)
		}
	}
}
