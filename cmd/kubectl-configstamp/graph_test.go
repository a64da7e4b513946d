package main

import (
	"strings"
	"testing"

	"github.com/configstamp/configstamp/internal/answer"
	"github.com/configstamp/configstamp/internal/inspect/fakecluster"
)

func TestGraph(t *testing.T) {
	server := incident(t)
	for _, form := range drawings() {
		golden(t, "graph-"+form, server, "graph", "-o", form)
	}
	golden(t, "graph-of-a-source", server, "graph", "secret/db", "-o", "mermaid")
	golden(t, "graph-of-a-workload", server, "graph", "deployment/failed", "-o", "dot")
	golden(t, "graph-of-nothing", server, "graph", "secret/nobody-uses-this")
	golden(t, "graph-wrong", server, "graph", "-o", "png")
}

// A source that does not exist is marked, unless the user may not list sources.
func TestGraph_MissingSources(t *testing.T) {
	server := fakecluster.New(t, "testdata/gone.yaml")
	golden(t, "graph-missing", server, "graph", "-o", "mermaid")
	server.Forbid = func(_, resource, _ string) bool { return resource == "secrets" }
	golden(t, "graph-missing-or-not", server, "graph", "-o", "mermaid")
}

func TestGraph_OfEachWayOfUse(t *testing.T) {
	golden(t, "graph-ways", fakecluster.New(t, "testdata/shop.yaml"), "graph", "-o", "mermaid")
}

// Names of others stay names.
func TestGraph_QuotesWhatOthersSay(t *testing.T) {
	g := answer.Graph{Workloads: []answer.GraphWorkload{{Namespace: `x"]<b>`, Workload: "deployment/web", State: answer.Done}}}
	if text := dot(&g); !strings.Contains(text, `label="namespace x\"]<b>"`) {
		t.Error(text)
	}
	if text := mermaid(&g); !strings.Contains(text, `["namespace x#quot;]#lt;b#gt;"]`) {
		t.Error(text)
	}
}
