package main

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configstamp/configstamp/e2e/fakecluster"
	"github.com/configstamp/configstamp/internal/reason"
)

func TestWhy(t *testing.T) {
	server := incident(t)
	golden(t, "why-failed", server, "why", "deployment/failed")
	golden(t, "why-failed-json", server, "why", "deployment/failed", "-o", "json")
	golden(t, "why-halted", server, "why", "sts/halted")
	golden(t, "why-paused", server, "why", "paused")
	golden(t, "why-in-step", server, "why", "deploy", "in-step")
	golden(t, "why-not-served", server, "why", "deployment/mislabelled")
	golden(t, "why-pod", server, "why", "pod/failed-3-abcde")
	golden(t, "why-nothing", server, "why", "deployment/no-such")
	golden(t, "why-no-kind", server, "why", "gizmo/failed")
}

// A user who may only look at pods and workloads is told what that tells, and what not.
func TestWhy_WithFewRights(t *testing.T) {
	server := incident(t)
	server.Forbid = func(verb, resource, _ string) bool {
		return verb == "patch" || resource != "deployments" && resource != "statefulsets" && resource != "replicasets"
	}
	golden(t, "why-few-rights", server, "why", "deployment/failed")
}

// Where Secrets do not count it is said to who looks at what reads one.
func TestWhy_ConfigMapsAlone(t *testing.T) {
	server := incident(t)
	server.Apply(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: configstamp-settings, namespace: configstamp}, data: {sources: configmaps}}`)
	golden(t, "why-configmaps", server, "why", "deployment/in-step")
	golden(t, "users-configmaps", server, "users", "secret/db")
}

// What is gone is told by name.
func TestWhy_Gone(t *testing.T) {
	server := fakecluster.New(t, "testdata/gone.yaml")
	server.Dry = func(_ string, object *unstructured.Unstructured) ([]string, error) {
		if object.GetName() == "gone" {
			return []string{reason.OutcomeMissing.Warning()}, nil
		}
		return []string{inStep}, nil
	}
	golden(t, "why-gone", server, "why", "deployment/gone")
	golden(t, "status-gone", server, "status")
}

// Annotations for Reloader do not count unless --dialects lists it, whatever else opts the workload in.
func TestWhy_AnotherProductsAnnotations(t *testing.T) {
	server := healthy(t)
	set(webDeploy, "true", "metadata", "annotations", "reloader.stakater.com/auto")(t, server)
	golden(t, "why-dialect-off", server, "why", "deployment/web")
}
