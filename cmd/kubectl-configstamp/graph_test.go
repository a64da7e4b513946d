package main

import (
	"testing"

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

func TestGraph_OfEachWayOfUse(t *testing.T) {
	golden(t, "graph-ways", fakecluster.New(t, "testdata/shop.yaml"), "graph", "-o", "mermaid")
}
