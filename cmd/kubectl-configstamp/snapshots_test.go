package main

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configstamp/configstamp/e2e/fakecluster"
)

// pinned is a cluster in which pods are pinned to snapshots.
func pinned(t *testing.T) *fakecluster.Server {
	t.Helper()
	server := fakecluster.New(t, "testdata/pinned.yaml")
	server.Now = atThree()
	server.Admit = func(manager string, object *unstructured.Unstructured) ([]string, error) {
		annotations := object.GetAnnotations()
		switch {
		case object.GetKind() == "Deployment" && manager == "configstamp-accept":
			delete(annotations, "configstamp.dev/declined")
			object.SetAnnotations(annotations)
			return nil, unstructured.SetNestedField(object.Object, newStamp, "spec", "template", "metadata", "annotations", stampOfWeb)
		case object.GetKind() == "Deployment" && manager == "":
			return []string{"configstamp: undo: configmap/web is back at its content of 2026-11-20T10:00:00Z; its present content is declined until it changes again, or until kubectl configstamp accept"}, nil
		}
		return nil, nil
	}
	return server
}

func TestSnapshots(t *testing.T) {
	server := pinned(t)
	golden(t, "snapshots", server, "snapshots", "configmap/web")
	golden(t, "snapshots-json", server, "snapshots", "cm", "web", "-o", "json")
	golden(t, "snapshots-of-nothing", server, "snapshots", "configmap/nothing")
	golden(t, "snapshots-of-a-secret", server, "snapshots", "secret/db")
	golden(t, "snapshots-none", server, "snapshots", "configmap/configstamp-settings", "-n", "configstamp")
}

// By a person's order goes what no pod reads and its ConfigMap does not hold, and nothing else.
func TestSnapshots_Purge(t *testing.T) {
	server := pinned(t)
	golden(t, "purge-in-use", server, "snapshots", "configmap/web", "--purge", "--yes")
	const apps, core = "/apis/apps/v1/namespaces/shop/deployments/", "/api/v1/namespaces/shop/"
	server.Delete(t, apps+"undone")
	server.Delete(t, apps+"waiting")
	golden(t, "purge-pods", server, "snapshots", "configmap/web", "--purge", "--yes", "--only", "00000000000000000001")
	server.Delete(t, core+"pods/waiting-1-x2x9l")
	golden(t, "purge-without-yes", server, "snapshots", "configmap/web", "--purge")
	server.Forbid = func(_, resource, _ string) bool { return resource == "pods" }
	golden(t, "purge-unknown", server, "snapshots", "configmap/web", "--purge", "--yes")
	server.Forbid = func(verb, _, _ string) bool { return verb == "delete" }
	golden(t, "purge-forbidden", server, "snapshots", "configmap/web", "--purge", "--yes")
	server.Forbid = nil
	for _, request := range server.Requests() {
		if strings.HasPrefix(request, "DELETE") && !strings.Contains(request, "web-00000000000000000001") {
			t.Errorf("sent %s", request)
		}
	}
	server.Get(t, core+"configmaps/web-00000000000000000001") // it is there
	golden(t, "purge", server, "snapshots", "configmap/web", "--purge", "--yes")
	server.Get(t, core+"configmaps/web-00000000000000000002")
	server.Get(t, core+"configmaps/other")
	golden(t, "snapshots-purged", server, "snapshots", "configmap/web", "-o", "name")
}

func TestRestore(t *testing.T) {
	server := pinned(t)
	golden(t, "restore-dry", server, "restore", "configmap/web", "--dry-run=server")
	golden(t, "restore-same", server, "restore", "configmap/web", "--to", "00000000000000000002")
	if writes := server.Writes(); len(writes) > 0 {
		t.Errorf("%d writes, want none", len(writes))
	}
	golden(t, "restore", server, "restore", "configmap/web")
	writes := server.Writes()
	if len(writes) != 1 || writes[0].Manager != "configstamp-order" || strings.Contains(writes[0].Body, "snapshot") || strings.Contains(writes[0].Body, "immutable") {
		t.Fatalf("wrote %v, want the content alone", writes)
	}
}

// Whoever may create ConfigMaps can make one that looks like the newest snapshot.
func TestRestore_Planted(t *testing.T) {
	server := fakecluster.New(t, "testdata/pinned.yaml", "testdata/pinned-planted.yaml")
	server.Now = atThree()
	if out, errOut, code := run(t, server, "restore", "configmap/web"); code != 0 || !strings.Contains(out, "web-00000000000000000001") {
		t.Errorf("exit code %d, want the snapshot that a revision names\n%s%s", code, out, errOut)
	}
	golden(t, "restore-planted-alone", server, "restore", "configmap/lonely")
	golden(t, "restore-planted-named", server, "restore", "configmap/lonely", "--to", "ffffffffffffffffffff", "--dry-run=server")
}

func TestUndo(t *testing.T) {
	server := pinned(t)
	golden(t, "undo-dry", server, "undo", "deployment/web", "--dry-run=client")
	golden(t, "undo-no-revision", server, "undo", "deployment/web", "--to-revision", "7")
	golden(t, "undo-nothing-earlier", server, "undo", "deployment/undone")
	golden(t, "undo-to-now", server, "undo", "deployment/web", "--to-revision", "2")
	golden(t, "undo", server, "undo", "deployment/web")
	writes := server.Writes()
	if last := writes[len(writes)-1]; last.Manager != "" || strings.Contains(last.Body, "pod-template-hash") {
		t.Errorf("sent %v, want no field manager, and no hash of the revision", last)
	}
}

func TestAccept(t *testing.T) {
	server := pinned(t)
	golden(t, "accept-nothing", server, "accept", "deployment/web")
	golden(t, "accept-dry", server, "accept", "deployment/undone", "--dry-run=server")
	golden(t, "accept", server, "accept", "deployment/undone")
	golden(t, "accept-again", server, "accept", "deployment/undone")
}
