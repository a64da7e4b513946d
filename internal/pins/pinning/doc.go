// Package pinning gives the references of a Pod the names of snapshots, so that its
// containers read what the sources held when the Pod's template was stamped.
//
// It is pure: it is told which pins a Pod has and what their snapshots hold, and answers
// which fields to change. places.go finds the fields that name a ConfigMap; pin.go
// decides for each.
package pinning
