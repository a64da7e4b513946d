package order

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/inspect"
)

// Uses are what names a snapshot.
type Uses struct {
	// Workloads name it in their templates, Revisions in those that they had once. Of the first
	// Bring is what has them take the present content.
	Workloads, Revisions, Bring []string
	// Pods is how many read it.
	Pods int
	// Now tells that its source holds the same.
	Now bool
}

// Purge deletes a snapshot for good, which no collection would do while anything names it. One
// that pods read, or would, stays: their containers could not start again. So does what its
// source holds now, which would be made again. A revision that names it loses the way back to
// its content, and no more.
func (o *Orders) Purge(ctx context.Context, snapshot *corev1.ConfigMap, uses Uses) Did {
	of := inspect.OfSource(snapshot.Namespace, checksum.Source{Kind: checksum.ConfigMap, Name: snapshot.Name})
	did := o.did(of)
	switch {
	case uses.Now:
		return did.with(Kept, "its ConfigMap holds the same now; change that first, if this is what has to go")
	case len(uses.Workloads) > 0 || uses.Pods > 0:
		return did.inUse(uses)
	}
	did = did.with(Purged, "nothing reads it")
	if len(uses.Revisions) > 0 {
		did.Why = "no pod reads it; an undo to " + joined(uses.Revisions) + " brings the template back, and takes what the ConfigMap holds then"
	}
	if o.DryRun == Client {
		return did
	}
	if err := o.Cluster.Delete(ctx, snapshot); err != nil {
		return did.refused(of, err)
	}
	return did
}

// inUse refuses, and says what to do first.
func (d Did) inUse(uses Uses) Did {
	var users []string
	if len(uses.Workloads) > 0 {
		users = append(users, "new pods of "+joined(uses.Workloads))
	}
	if uses.Pods > 0 {
		users = append(users, fmt.Sprintf("pods that run (%d)", uses.Pods))
	}
	d = d.with(Refused, strings.Join(users, ", and ")+", read it: no container of theirs could start without it")
	if d.Next = "wait until these pods are gone, or delete them"; len(uses.Bring) > 0 {
		d.Next = "first: " + strings.Join(uses.Bring, "; ")
	}
	return d
}
