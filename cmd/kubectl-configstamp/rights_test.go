package main

import (
	"strings"
	"testing"
)

// Who may list no workload at all is told so, and no command ends as if it had looked.
func TestNothingMayBeListed(t *testing.T) {
	server := incident(t)
	server.Forbid = func(_, resource, namespace string) bool { return resource != "configmaps" || namespace == "" }
	out, errOut, code := run(t, server, "users", "cm/payment-api-config")
	if code != 1 || out != "" || !strings.Contains(errOut, "error: you have no right to list any kind of workload in namespace shop,") {
		t.Errorf("exit code %d\n%s%s", code, out, errOut)
	}
}
