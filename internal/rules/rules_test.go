package rules_test

import (
	"slices"
	"testing"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/rules"
)

func TestAListOfNamespacesOverrulesThoseExcluded(t *testing.T) {
	f := rules.Flags{Excluded: []string{"kube-system"}}
	if got := f.Never("configstamp"); !slices.Equal(got, []string{"configstamp", "kube-system"}) {
		t.Errorf("in the whole cluster: %v", got)
	}
	if f.MayServe("configstamp", "configstamp") || f.MayServe("configstamp", "kube-system") || !f.MayServe("configstamp", "shop") {
		t.Error("in the whole cluster, others may be served")
	}
	f.Namespaces = []string{"kube-system", "shop"}
	if f.MayServe("configstamp", "configstamp") || !f.MayServe("configstamp", "kube-system") || f.MayServe("configstamp", "blog") {
		t.Error("in some namespaces, others may be served")
	}
	if got := f.Never("configstamp"); !slices.Equal(got, []string{"configstamp"}) {
		t.Errorf("in some namespaces: %v", got)
	}
}

func TestTheWholeClusterLeavesSystemNamespacesOut(t *testing.T) {
	f := rules.Flags{Excluded: []string{"bank"}, OptIn: checksum.OptInAll}
	for namespace, want := range map[string]bool{"shop": true, "default": true, "stamper": false, "bank": false, "kube-system": false, "kube-node-lease": false} {
		if f.MayServe("stamper", namespace) != want {
			t.Errorf("%s may be served: %t", namespace, !want)
		}
	}
}
