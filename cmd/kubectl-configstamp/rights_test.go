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
}
