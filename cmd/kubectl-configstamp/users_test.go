package main

import (
	"testing"

	"github.com/configstamp/configstamp/e2e/fakecluster"
)

func TestUsers(t *testing.T) {
	server := fakecluster.New(t, "testdata/shop.yaml")
	golden(t, "users", server, "users", "configmap/payment-api-config")
	golden(t, "users-wide", server, "users", "cm/payment-api-config", "-o", "wide")
	golden(t, "users-json", server, "users", "cm", "payment-api-config", "-o", "json")
	golden(t, "users-name", server, "users", "cm/payment-api-config", "-o", "name")
	golden(t, "users-of-nothing", server, "users", "secret/nobody-uses-this")
	golden(t, "users-wrong", server, "users", "deployment/payment-api")
}

// Who may only look at workloads gets all that can be told, and is told what is missing.
func TestUsers_WithFewRights(t *testing.T) {
	server := fakecluster.New(t, "testdata/shop.yaml")
	server.Forbid = func(verb, resource, _ string) bool {
		return resource != "deployments" && resource != "statefulsets" || verb == "patch"
	}
	golden(t, "users-few-rights", server, "users", "configmap/payment-api-config")
	golden(t, "users-few-rights-yaml", server, "users", "configmap/payment-api-config", "-o", "yaml")
}
