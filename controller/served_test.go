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
		s         subject
		want      bool
	}{
		"one in a Namespace that is opted in":      {"shop", subject{}, true},
		"one in another Namespace":                 {"bank", subject{}, false},
		"one that opts in":                         {"bank", subject{inject: checksum.InjectEnabled}, true},
		"one that opts in, in an excluded one":     {"kube-system", subject{inject: checksum.InjectEnabled}, false},
		"one that opts out":                        {"shop", subject{inject: checksum.InjectDisabled}, false},
		"one that is being deleted":                {"shop", subject{deleting: true}, false},
		"one whose owner makes its template":       {"shop", subject{owned: true}, false},
		"one that another product's dialect marks": {"bank", subject{foreign: &checksum.Foreign{Kinds: checksum.Kinds()}}, true},
	} {
		if got := h.serves(workload.Ref{Kind: h.cluster.kind, Namespace: c.namespace, Name: "d"}, &c.s); got != c.want {
			t.Errorf("%s: served: %t, want %t", about, got, c.want)
		}
	}
}
