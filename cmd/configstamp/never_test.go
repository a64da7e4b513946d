package main

import (
	"slices"
	"testing"
)

func TestAListOfNamespacesOverrulesThoseExcluded(t *testing.T) {
	o := controllerOptions{excluded: []string{"kube-system"}}
	o.namespace = "configstamp"
	if got := o.never(); !slices.Equal(got, []string{"configstamp", "kube-system"}) {
		t.Errorf("in the whole cluster: %v", got)
	}
	o.namespaces = []string{"kube-system", "shop"}
	if got := o.never(); !slices.Equal(got, []string{"configstamp"}) {
		t.Errorf("in some namespaces: %v", got)
	}
}
