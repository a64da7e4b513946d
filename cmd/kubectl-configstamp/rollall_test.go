package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/configstamp/configstamp/e2e/fakecluster"
)

const stampOfDB = "secret.configstamp.dev/db"

// leaked is a cluster in which a password was changed that many kinds of workloads use.
func leaked(t *testing.T) *fakecluster.Server {
	t.Helper()
	server := fakecluster.New(t)
	server.Now = atThree()
	const header = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop, labels: {configstamp.dev/inject: enabled}, annotations: {configstamp.dev/pause: \"true\"}}\n---\n" +
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: configstamp-settings, namespace: configstamp}\ndata: {settle: 2s}\n---\n" +
		"apiVersion: v1\nkind: Secret\nmetadata: {name: db, namespace: shop}\ndata: {password: bmV2ZXItc2hvd24=}\n"
	server.Apply(t, header)
	deployment := func(name, metadata, source string) {
		server.Apply(t, fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, namespace: shop, generation: 1%[2]s}
spec:
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {annotations: {secret.configstamp.dev/db: "v1:aaaaaaaa:all:11111111111111111111111111111111"}}
    spec: {containers: [{name: app, envFrom: [{secretRef: {name: %[3]s}}]}]}
status: {observedGeneration: 1, replicas: 1, updatedReplicas: 1, availableReplicas: 1}
`, name, metadata, source))
	}
	deployment("paused", "", "db")
	deployment("ignores", ", annotations: {configstamp.dev/ignore: secret/db}", "db")
	deployment("in-step", "", "db")
	deployment("observed", ", annotations: {configstamp.dev/mode: observe}", "db")
	deployment("opted-out", ", labels: {configstamp.dev/inject: disabled}", "db")
	deployment("other", "", "other")
	deployment("refused", "", "db")
	pod := "apiVersion: v1\nkind: Pod\nmetadata: {name: %s, namespace: shop%s}\nspec: {containers: [{name: app, envFrom: [{secretRef: {name: db}}]}]}\nstatus: {phase: %s}\n"
	server.Apply(t, fmt.Sprintf(pod, "bare", "", "Running"))
	server.Apply(t, fmt.Sprintf(pod, "over", "", "Succeeded"))
	server.Apply(t, fmt.Sprintf(pod, "paused-1-abcde", ", ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: paused-1, uid: u, controller: true}]", "Running"))
	stamp := func(object *unstructured.Unstructured) error {
		return unstructured.SetNestedField(object.Object, newStamp, "spec", "template", "metadata", "annotations", stampOfDB)
	}
	server.Dry = func(_ string, object *unstructured.Unstructured) ([]string, error) {
		switch object.GetName() {
		case "ignores", "in-step":
			return []string{inStep}, nil
		case "observed":
			return []string{"configstamp: observed: content has changed, but mode is observe; nothing would restart"}, nil
		}
		return []string{wouldRoll}, stamp(object)
	}
	server.Admit = func(manager string, object *unstructured.Unstructured) ([]string, error) {
		switch {
		case object.GetName() == "refused":
			return nil, errors.New(`admission webhook "policy.example.com" denied the request: not on a Sunday`)
		case manager == "configstamp":
			return nil, stamp(object)
		}
		return nil, nil
	}
	return server
}

// written lists the workloads that were patched, each with what was written: an order, or a restart.
func written(server *fakecluster.Server) (all []string) {
	for _, write := range server.Writes() {
		what := "order"
		if strings.Contains(write.Body, "kubectl.kubernetes.io/restartedAt") && write.Manager == "configstamp-order" {
			what = "restart"
		}
		all = append(all, write.Path[strings.LastIndex(write.Path, "/")+1:]+" "+what)
	}
	slices.Sort(all)
	return all
}

// Everything that uses a Secret rolls or restarts, whatever holds it. One that fails does not stop the others.
func TestRollAll(t *testing.T) {
	server := leaked(t)
	golden(t, "roll-all-client", server, "roll", "secret/db", "--all", "--dry-run=client")
	golden(t, "roll-all-unasked", server, "roll", "secret/db", "--all")
	if writes := server.Writes(); len(writes) > 0 {
		t.Errorf("without an answer it has written %v", writes)
	}
	golden(t, "roll-all", server, "roll", "secret/db", "--all", "--yes")
	want := []string{"ignores restart", "observed restart", "opted-out restart", "paused order"}
	if got := written(server); !slices.Equal(got, want) {
		t.Errorf("it has written %v, want %v", got, want)
	}
	golden(t, "roll-all-nothing", server, "roll", "secret/db", "--all", "-n", "configstamp")
}

// If the webhook does not answer, what uses the Secret is restarted all the same.
func TestRollAll_WithoutTheWebhook(t *testing.T) {
	server := leaked(t)
	server.Dry, server.Admit = nil, nil
	out, errOut, code := run(t, server, "roll", "secret/db", "--all", "--yes")
	want := []string{"ignores restart", "in-step restart", "observed restart", "opted-out restart", "paused restart", "refused restart"}
	if got := written(server); code != 0 || !slices.Equal(got, want) {
		t.Errorf("exit code %d, it has written %v, want %v\n%s%s", code, got, want, out, errOut)
	}
}

// Who may not patch, or not list, does not end as if all had rolled.
func TestRollAll_WithFewRights(t *testing.T) {
	for verb, want := range map[string]string{"patch": "cannot patch resource", "list": "could be looked at"} {
		server := leaked(t)
		server.Forbid = func(asked, resource, _ string) bool { return asked == verb && resource != "statefulsets" }
		out, errOut, code := run(t, server, "roll", "secret/db", "--all", "--yes")
		if writes := server.Writes(); code != 1 || len(writes) > 0 || !strings.Contains(errOut, want) {
			t.Errorf("no right to %s: exit code %d, it has written %v\n%s%s", verb, code, writes, out, errOut)
		}
	}
}

func TestConfirm(t *testing.T) {
	for _, test := range []struct {
		terminal bool
		answer   string
		done     bool
	}{{true, "y\n", true}, {true, "YES\n", true}, {true, "n\n", false}, {true, "\n", false}, {true, "", false}, {true, "yesterday\n", false}, {false, "y\n", false}} {
		p := newPlugin(genericiooptions.IOStreams{In: strings.NewReader(test.answer), Out: io.Discard, ErrOut: io.Discard}, atThree)
		p.isTerminal = func(any) bool { return test.terminal }
		if err := p.confirm("Really?"); (err == nil) != test.done {
			t.Errorf("%+v: %v", test, err)
		}
	}
}

func TestInTemplate(t *testing.T) {
	const want = `{"spec":{"jobTemplate":{"spec":{"template":{"metadata":{"annotations":{"k":"v"}}}}}}}`
	if got := string(inTemplate([]string{"spec", "jobTemplate", "spec", "template"}, "k", "v")); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
