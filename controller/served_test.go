package controller

import (
	"testing"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/workload"
)

// What the rule looks at, the controller tells it.
func TestServes(t *testing.T) {
	h := newHouse(t, newCluster(t))
	for about, c := range map[string]struct {
		namespace string
		s         Workload
		want      bool
	}{
		"one in a Namespace that is opted in":      {"shop", Workload{}, true},
		"one in another Namespace":                 {"bank", Workload{}, false},
		"one that opts in":                         {"bank", Workload{inject: checksum.InjectEnabled}, true},
		"one that opts in, in an excluded one":     {"kube-system", Workload{inject: checksum.InjectEnabled}, false},
		"one that opts out":                        {"shop", Workload{inject: checksum.InjectDisabled}, false},
		"one that is being deleted":                {"shop", Workload{deleting: true}, false},
		"one whose owner makes its template":       {"shop", Workload{owned: true}, false},
		"one that another product's dialect marks": {"bank", Workload{foreign: &checksum.Foreign{Kinds: checksum.Kinds()}}, true},
	} {
		if got := h.serves(workload.Ref{Kind: h.cluster.kind, Namespace: c.namespace, Name: "d"}, &c.s); got != c.want {
			t.Errorf("%s: served: %t, want %t", about, got, c.want)
		}
	}
}
