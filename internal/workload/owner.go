package workload

import (
	"cmp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// hashOf is what the name of a pod's ReplicaSet ends with, by the pod's labels.
func hashOf(labels map[string]string) string {
	return cmp.Or(labels["pod-template-hash"], labels["rollouts-pod-template-hash"])
}

// MadeBy reports whether a pod that a workload's selector finds is the workload's, as far as its
// controller says: pods of others may have the same labels. One without a controller is about
// to get one. What is of no kind of the table may stand between, and between a custom resource
// and its pods anything.
func (t Table) MadeBy(ref Ref, uid types.UID, pod *Pod) bool {
	if pod.Owner.UID == "" || pod.Owner.UID == uid {
		return true
	}
	makers := t.Makers(pod.Owner, pod.Hash)
	unknown := len(makers) == 0 || ref.Kind.Custom
	for _, maker := range makers {
		if maker.Kind.String() != ref.Kind.String() {
			continue
		}
		if maker.Name == ref.Name {
			return true
		}
		unknown = false
	}
	return unknown
}

// Makers are the workloads of the table that may have made what an owner owns, by the owner's
// name: a Deployment by its ReplicaSet's. hash is Pod.Hash. They have no namespace.
func (t Table) Makers(owner metav1.OwnerReference, hash string) (all []Ref) {
	group, _, _ := strings.Cut(owner.APIVersion, "/")
	if group == owner.APIVersion {
		group = "" // v1
	}
	maker, between := strings.CutSuffix(owner.Name, "-"+hash) // an object whose name ends with something of its own
	if owner.Kind != replicaSet {
		at := strings.LastIndexByte(owner.Name, '-')
		maker, between = owner.Name[:max(at, 0)], at > 0
	}
	for _, kind := range t {
		switch {
		case kind.Group == group && kind.Name == owner.Kind:
			all = append(all, Ref{Kind: kind, Name: owner.Name})
		case between && kind.Makes == owner.Kind:
			all = append(all, Ref{Kind: kind, Name: maker})
		}
	}
	return all
}
