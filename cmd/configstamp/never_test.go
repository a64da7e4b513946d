package main

import (
	"slices"
	"testing"

	"github.com/configstamp/configstamp/checksum"
)

func TestAListOfNamespacesOverrulesThoseExcluded(t *testing.T) {
	o := controllerOptions{common: common{excluded: []string{"kube-system"}}}
	o.namespace = "configstamp"
	if got := o.never(); !slices.Equal(got, []string{"configstamp", "kube-system"}) {
		t.Errorf("in the whole cluster: %v", got)
	}
	if o.mayServe("configstamp") || o.mayServe("kube-system") || !o.mayServe("shop") {
		t.Error("in the whole cluster, others may be served")
	}
	o.namespaces = []string{"kube-system", "shop"}
	if o.mayServe("configstamp") || !o.mayServe("kube-system") || o.mayServe("blog") {
		t.Error("in some namespaces, others may be served")
	}
	if got := o.never(); !slices.Equal(got, []string{"configstamp"}) {
		t.Errorf("in some namespaces: %v", got)
	}
}

func TestTheWholeClusterLeavesSystemNamespacesOut(t *testing.T) {
	o := common{namespace: "stamper", excluded: []string{"bank"}, optIn: checksum.OptInAll}
	for namespace, want := range map[string]bool{"shop": true, "default": true, "stamper": false, "bank": false, "kube-system": false, "kube-node-lease": false} {
		if o.mayServe(namespace) != want {
			t.Errorf("%s may be served: %t", namespace, !want)
		}
	}
}
