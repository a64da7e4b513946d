package main

import (
	"strings"
	"testing"
)

// Who may list no workload at all is told so, and no command ends as if it had looked.
func TestNothingMayBeListed(t *testing.T) {
	server := incident(t)
	server.Forbid = func(_, resource, namespace string) bool { return resource != "configmaps" || namespace == "" }
	for args, where := range map[string]string{
		"status": "in namespace shop,", "status -o json": "in namespace shop,", "status -A": "in all namespaces; use -n", "status --watch": "in namespace shop,",
		"users cm/payment-api-config": "in namespace shop,", "impact cm/payment-api-config": "in namespace shop,",
	} {
		out, errOut, code := run(t, server, strings.Fields(args)...)
		if code != 1 || out != "" || !strings.Contains(errOut, "error: you have no right to list any kind of workload "+where) {
			t.Errorf("%s: exit code %d\n%s%s", args, code, out, errOut)
		}
	}
	if _, _, code := run(t, server, "impact", "cm/payment-api-config", "--exit-code"); code != codeUnsure {
		t.Errorf("a pipeline is told %d", code)
	}
	server.Forbid = func(_, resource, _ string) bool { return resource != "cronjobs" } // one kind is enough
	if out, _, code := run(t, server, "status"); code != 0 || !strings.Contains(out, "0 workloads") {
		t.Errorf("of one kind: exit code %d\n%s", code, out)
	}
}
