package main

import (
	"strings"
	"testing"

	"github.com/configstamp/configstamp/e2e/fakecluster"
)

func TestDidYouMean(t *testing.T) {
	names := []string{"web", "web-app", "db", "cart", "payment-api-config"}
	for wrong, want := range map[string]string{
		"wep": "; did you mean web?", "wbe-app": "; did you mean web-app?", "cartt": "; did you mean cart?", "payment-config": "; did you mean payment-api-config?",
		"something-else": "",
	} {
		if got := didYouMean(wrong, names); got != want {
			t.Errorf("%q: %q, want %q", wrong, got, want)
		}
	}
}

// Wrong names are errors. Only names that the user may list are proposed.
func TestWrongNames(t *testing.T) {
	for args, want := range map[string]string{
		"pause deployment/stall":     `deployments.apps "stall" not found in namespace shop; did you mean stale?`,
		"roll stale":                 `"stale" is not a workload: want a kind and a name, such as deployment/web`,
		"pause namespace/shpo":       `namespaces "shpo" not found; did you mean shop?`,
		"unpause deployment/x -n no": `namespaces "no" not found`,
		"resume configmap/wep":       `configmaps "wep" not found in namespace shop; did you mean web?`,
		"roll deploymnet/stale":      `"deploymnet" is not a kind of workload; there are: deployment, `,
		"roll configmap/web":         "configmap/web is not a workload; --all rolls every workload that uses it",
	} {
		server := ordered(t)
		_, errOut, code := run(t, server, strings.Fields(args)...)
		if code != 1 || !strings.Contains(errOut, want) {
			t.Errorf("%s: exit code %d, want %q in\n%s", args, code, want, errOut)
		}
		server.Forbid = func(verb, _, _ string) bool { return verb == "list" }
		if _, errOut, code = run(t, server, strings.Fields(args)...); code != 1 || strings.Contains(errOut, "did you mean") {
			t.Errorf("%s, without the right to list: exit code %d\n%s", args, code, errOut)
		}
		if writes := server.Writes(); len(writes) > 0 {
			t.Errorf("%s has written %v", args, writes)
		}
	}
}

// Of Secrets nothing but metadata is read.
func TestOrders_ReadNoContentOfSecrets(t *testing.T) {
	server := fakecluster.New(t, "testdata/examples.yaml", "testdata/installation.yaml")
	server.Now = atThree()
	var accepted []string
	server.Intercept = func(resource, accept string) {
		if resource == "secrets" {
			accepted = append(accepted, accept)
		}
	}
	for _, args := range []string{"resume secret/db -o json", "resume secret/bd", "roll secret/db --all --yes"} {
		run(t, server, strings.Fields(args)...)
	}
	for _, accept := range accepted {
		if !strings.Contains(accept, "as=PartialObjectMetadata") {
			t.Errorf("asked for %s", accept)
		}
	}
	if len(accepted) < 5 {
		t.Errorf("asked %d times", len(accepted))
	}
	if out, _, _ := run(t, server, "resume", "secret/db", "-o", "jsonpath={.kind}"); out != "Secret" {
		t.Errorf("the kind of a Secret is %q", out)
	}
}
