package order

import (
	"context"
	"fmt"
	"slices"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/inspect"
	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/seen"
	"github.com/configstamp/configstamp/internal/reason"
)

// Undo brings a workload back to one of its revisions, as kubectl rollout undo does: to the
// one of that number, 0: to the one before the newest. The webhook says which sources go
// back, too.
func (o *Orders) Undo(ctx context.Context, w *seen.Workload, number int64) Did {
	of := inspect.OfWorkload(w.Ref)
	did := o.did(of)
	revisions, err := o.Cluster.Revisions(ctx, w)
	if err != nil {
		return did.with(Refused, err.Error())
	}
	to := revisionTo(revisions, number)
	if to == nil {
		did.Next = "kubectl configstamp why " + target(of)
		if number != 0 {
			return did.with(Refused, fmt.Sprintf("it has no revision %d", number))
		}
		return did.with(Refused, "it has no earlier revision")
	}
	what := fmt.Sprintf("it goes back to revision %d of %s", to.Number, to.Created.Format("2006-01-02T15:04:05Z"))
	if len(to.Pins) == 0 {
		what += "; that revision names no snapshots, so its pods read the present content"
	}
	if w.Status.Waits != "" {
		what += "; no pod starts by that: " + w.Status.Waits
	}
	did = did.with(Undone, what)
	did.Next = "kubectl rollout status " + target(of)
	if o.DryRun == Client {
		return did
	}
	patch, err := o.Cluster.Undo(ctx, w, to)
	if err != nil {
		return did.refused(of, err)
	}
	patch.Dry = o.DryRun == Server
	after, warnings, err := o.Cluster.PatchWorkload(ctx, o.Settings, *patch)
	if err != nil {
		return did.refused(of, err)
	}
	if did.Warnings = plain(warnings); after.Object.Generation == w.Object.Generation && o.DryRun == None {
		did.Next = ""
		return did.with(Unchanged, fmt.Sprintf("its template is that of revision %d already", to.Number))
	}
	return did
}

// revisionTo is the revision of a number, nil when there is none. They are sorted, the
// newest, which is that of now, first.
func revisionTo(revisions []seen.Revision, number int64) *seen.Revision {
	for i := range revisions {
		if number == 0 && i == 1 || number != 0 && revisions[i].Number == number {
			return &revisions[i]
		}
	}
	return nil
}

// Accept has a workload take content that an undo has sent back. It rolls now.
func (o *Orders) Accept(ctx context.Context, w *seen.Workload) Did {
	of := inspect.OfWorkload(w.Ref)
	did := o.did(of)
	declined, err := checksum.ParseDeclined(w.Records.Declined)
	if err == nil && len(declined) == 0 {
		return did.with(Unchanged, "no undo has declined content of its sources")
	}
	did = did.with(Accepted, "declined content counts again, and the workload rolls out if a source still holds it")
	did.Next = "kubectl configstamp wait " + target(of)
	if o.DryRun == Client {
		return did
	}
	patch := inspect.Patch{Of: of, Body: []byte("{}"), Manager: checksum.AcceptManager, Dry: o.DryRun == Server}
	after, warnings, err := o.Cluster.PatchWorkload(ctx, o.Settings, patch)
	if err != nil {
		return did.refused(of, err)
	}
	did.Warnings = plain(warnings)
	switch {
	case after.Records.Declined != "":
		did.Next = "kubectl configstamp why " + target(of)
		return did.with(Refused, "it was sent, and the content is still declined: the webhook did not answer, or could not read the sources in time; try again")
	case o.DryRun == None && after.Object.Generation == w.Object.Generation:
		did.Next = "kubectl configstamp why " + target(of)
		return did.with(Accepted, "nothing is declined any more; nothing rolled out yet")
	}
	return did
}

// plain returns warnings, ours without name and code.
func plain(warnings []string) []string {
	said := slices.Clone(warnings)
	for i, warning := range warnings {
		if message, ours := reason.Parse(warning); ours {
			said[i] = message.Sentence
		}
	}
	return said
}
