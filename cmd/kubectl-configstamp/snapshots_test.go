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
			return []string{"configstamp: undo: configmap/web is back at its earlier content of 2026-11-20T10:00:00Z; its present content is declined until it changes again, or until kubectl configstamp accept"}, nil
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

func TestRestore(t *testing.T) {
	server := pinned(t)
	golden(t, "restore-dry", server, "restore", "configmap/web", "--to", "web-00000000000000000001", "--dry-run=server")
	golden(t, "restore-same", server, "restore", "configmap/web", "--to", "00000000000000000002")
	if writes := server.Writes(); len(writes) > 0 {
		t.Errorf("%d writes, want none", len(writes))
	}
	golden(t, "restore-which", server, "restore", "configmap/web")
	golden(t, "restore", server, "restore", "configmap/web", "--to", "00000000000000000001")
	writes := server.Writes()
	if len(writes) != 1 || writes[0].Manager != "configstamp-order" || strings.Contains(writes[0].Body, "snapshot") || strings.Contains(writes[0].Body, "immutable") {
		t.Fatalf("wrote %v, want the content alone", writes)
	}
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
