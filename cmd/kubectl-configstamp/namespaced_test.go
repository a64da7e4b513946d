package main

import (
	"strings"
	"testing"

	"github.com/configstamp/configstamp/e2e/fakecluster"
)

// Which namespaces the flag --namespaces lists is not published, so no order is given in all namespaces at once.
func TestPause_WhereNoLabelOptsIn(t *testing.T) {
	server := fakecluster.New(t)
	server.Now, server.Everywhere = atThree(), true
	server.Apply(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n")
	if out, errOut, code := run(t, server, "pause", "-A"); code == 0 || !strings.Contains(errOut, "error: ") {
		t.Errorf("exit code %d\n%s%s", code, out, errOut)
	}
}
