package main

import (
	"strings"
	"testing"

	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/answer"
	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/inspect/fakecluster"
)

func TestGraph(t *testing.T) {
	golden(t, "graph-dot", incident(t), "graph")
	golden(t, "graph-mermaid", incident(t), "graph", "-o", "mermaid")
	golden(t, "graph-of-a-workload", incident(t), "graph", "deployment/failed", "-o", "dot")
	golden(t, "graph-missing", fakecluster.New(t, "testdata/gone.yaml"), "graph", "-o", "mermaid")
	golden(t, "graph-wrong", incident(t), "graph", "-o", "png")
}

// Names of others stay names.
func TestGraph_QuotesWhatOthersSay(t *testing.T) {
	edges := []answer.Edge{{Namespace: `x"]<b>`, Workload: "deployment/web", State: answer.Done}}
	for want, draw := range map[string]func(*strings.Builder){
		`label="x\"]<b>/deployment/web"`:       func(b *strings.Builder) { dot(b, edges) },
		`["x#quot;]#lt;b#gt;/deployment/web"]`: func(b *strings.Builder) { mermaid(b, edges) },
	} {
		var text strings.Builder
		if draw(&text); !strings.Contains(text.String(), want) {
			t.Errorf("%q is not in %s", want, &text)
		}
	}
}
