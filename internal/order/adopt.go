package order

import (
	"context"
	"maps"
	"strings"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/answer"
	"github.com/configstamp/configstamp/internal/inspect"
	"github.com/configstamp/configstamp/internal/seen"
)

// Adopt gives a workload records of what its sources hold now, where it has none: nothing
// restarts, and it rolls when content changes from now on. The controller does the same
// within moments; this is for what it could not do. With restart, a workload that has no
// records at all is told to take the content of now: the controller rolls it in its turn.
func (o *Orders) Adopt(ctx context.Context, f *seen.Fleet, w *seen.Workload, restart bool, now time.Time) Did {
	of := inspect.OfWorkload(w.Ref)
	did := o.did(of)
	p := answer.ProgressOf(f, w, now)
	if p.State == answer.Unserved {
		did.Next = p.Next
		return did.with(Refused, "configstamp leaves it alone: "+p.Why)
	}
	bare := len(w.Records.Stamps) == 0 && w.Records.Baseline == nil
	switch outcome := f.Outcome(w); outcome.Code {
	case seen.WouldRecord:
		if restart && bare {
			return o.adoptByRestart(ctx, of)
		}
		if did = o.record(ctx, f.Settings, w, did); restart && did.Result == Recorded {
			did.Why += "; --restart is for workloads without any record"
		}
		return did
	case seen.InStep:
		did = did.with(Unchanged, "it has its records, and is in step")
		did.Quiet = true
		if restart {
			did.Next = "to restart it anyway: kubectl rollout restart " + target(of)
		}
		return did
	case seen.WouldRoll, seen.Observed, seen.Held:
		did.Next = "kubectl configstamp roll " + target(of)
		if bare {
			return did.with(Unchanged, "it already has configstamp.dev/adopt=restart: it rolls when its turn comes")
		}
		did.Quiet = true
		return did.with(Unchanged, "it has its records, and is out of date")
	case seen.Unknown, seen.Deferred:
		return did.with(Refused, "nothing was sent: "+outcome.Sentence)
	default:
		did.Next = "kubectl configstamp why " + target(of)
		return did.with(Kept, outcome.Sentence)
	}
}

// adoptByRestart writes the setting on the workload; its controller does the rest.
func (o *Orders) adoptByRestart(ctx context.Context, of inspect.Target) Did {
	return o.annotate(ctx, of, func(meta *inspect.Metadata) (edit, Did) {
		value := "restart"
		change := edit{adoptKey: &value}
		did := o.did(of)
		did.Wrote, did.Next, did.MayBeUndoneBy = change.of(adoptKey), "kubectl configstamp wait "+target(of), meta.Applier(adoptKey)
		if before, set := meta.Annotations[adoptKey]; set && before != value {
			did.Overrules = []string{adoptKey + "=" + before}
		}
		return change, did.with(ToRoll, "it has no records: it rolls when its turn comes, and gets the current content")
	})
}

// record sends a recording re-admission, which can restart nothing. Any patch is looked at
// by other webhooks too: if one of them would change something, nothing is sent.
func (o *Orders) record(ctx context.Context, settings *seen.Settings, w *seen.Workload, did Did) Did {
	of := inspect.OfWorkload(w.Ref)
	did = did.with(Recorded, "what its sources hold now is recorded; nothing restarts")
	if o.DryRun == Client {
		return did
	}
	others, err := o.Cluster.OtherChanges(ctx, of, checksum.RecordingManager)
	if err != nil {
		return did.refused(of, err)
	}
	if len(others) > 0 {
		return did.with(Refused, "nothing was sent: another webhook would also change "+strings.Join(others, ", "))
	}
	patch := inspect.Patch{Of: of, Body: []byte("{}"), Manager: checksum.RecordingManager, Dry: o.DryRun == Server}
	after, warnings, err := o.Cluster.PatchWorkload(ctx, settings, patch)
	if err != nil {
		return did.refused(of, err)
	}
	did.Warnings = warnings
	if maps.Equal(after.Records.Baseline, w.Records.Baseline) {
		did.Next = "kubectl configstamp why " + target(of)
		return did.with(Refused, "it was sent, and nothing was recorded: the webhook could not prove what the sources hold, or it takes you for the controller of another installation, as it does service accounts")
	}
	return did
}
