package namespaced

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/configstamp/configstamp/e2e/harness"
)

// Pins give the right to create and delete ConfigMaps, where the chart gives any; the policy
// holds our own token to snapshots.
func TestOurTokenWritesSnapshotsAlone(t *testing.T) {
	thief := run.Stolen(t).Discovery().RESTClient()
	send := func(verb, namespace, name, kind, body string) error {
		path := "/api/v1/namespaces/" + namespace + "/configmaps"
		if name != "" {
			path += "/" + name
		}
		return thief.Verb(verb).RequestURI(path).SetHeader("Content-Type", kind).Body([]byte(body)).Do(t.Context()).Error()
	}
	const snapshot = "web-message-3f2a91c07d5e8b4416aa"
	object := func(name, metadata string) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,%s},"immutable":true,"data":{"MESSAGE":"hello"}}`, name, metadata)
	}
	const marks = `"labels":{"configstamp.dev/snapshot":"true"},"annotations":{"configstamp.dev/of":"configmap/web-message","configstamp.dev/made":"2027-01-02T06:00:00Z"}`
	create := func(namespace, name, metadata string) error {
		return send(http.MethodPost, namespace, "", "application/json", object(name, metadata))
	}
	run.Existing(t, "team-a").Set("configmap/web-message", "MESSAGE", "hello world")
	run.Existing(t, "team-c")
	refused := func(what string, err error, saying string) {
		t.Helper()
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), saying) {
			t.Errorf("%s: %v, want it forbidden: %s", what, err, saying)
		}
	}
	const notOne, byRoles = "configstamp may create and delete its snapshots, and no other ConfigMap", `" cannot `
	refused("an ordinary one", create("team-a", "stolen", `"labels":{}`), notOne)
	refused("a label for others", create("team-a", snapshot, strings.Replace(marks, `"true"`, `"true","grafana_dashboard":"1"`, 1)), "just its own label and annotations")
	refused("another namespace", create("team-c", snapshot, marks), byRoles)
	refused("an ordinary one is deleted", send(http.MethodDelete, "team-a", "web-message", "application/json", ""), notOne)
	refused("all are deleted", send(http.MethodDelete, "team-a", "", "application/json", ""), byRoles)
	harness.Must(t, create("team-a", snapshot, marks))
	refused("one is changed", send(http.MethodPatch, "team-a", snapshot, "application/merge-patch+json", `{"metadata":{"labels":null}}`), byRoles)
	harness.Must(t, send(http.MethodDelete, "team-a", snapshot, "application/json", ""))
}
