package order

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/answer"
	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/inspect"
	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/seen"
)

// restartedAt is the annotation by which kubectl rollout restart changes a template.
const restartedAt = "kubectl.kubernetes.io/restartedAt"

// Roll has one workload roll now if it is out of date: out of turn, and whatever pause,
// window, interval or halt holds it. Under mode observe, in which an order of ours rolls
// nothing, it restarts the workload as kubectl rollout restart does: the webhook stamps what
// is true now. f is a fleet of it alone, with the webhook's answer.
func (o *Orders) Roll(ctx context.Context, f *seen.Fleet, now time.Time) Did {
	w := f.Workloads[0]
	of := inspect.OfWorkload(w.Ref)
	p := answer.ProgressOf(f, w, now)
	did := o.did(of)
	outcome := f.Outcome(w)
	if p.State == answer.Unserved {
		did.Next = p.Next
		return did.with(Refused, "configstamp leaves it alone: "+p.Why)
	}
	switch outcome.Code {
	case seen.InStep:
		did.Next = "to restart it anyway: kubectl rollout restart " + target(of)
		return did.with(Unchanged, "it is in step, so there is nothing to roll")
	case seen.WouldRecord:
		did.Next = "kubectl configstamp why " + target(of)
		return did.with(Unchanged, "records of its sources are missing, so nothing is known to have changed")
	case seen.WouldRoll:
		did.Overrules = overrules(f, w, &p, now)
		return o.order(ctx, f, w, did)
	case seen.Observed:
		did.Overrules = []string{"configstamp.dev/mode=observe"}
		return o.restart(ctx, f, w, did)
	case seen.Unknown: // which says where to look
		return did.with(Refused, "nothing was sent: "+outcome.Sentence)
	default:
		did.Next = "kubectl configstamp why " + target(of)
		return did.with(Refused, "nothing was sent: "+outcome.Sentence)
	}
}

// overrules are what would hold a workload if nobody had ordered otherwise.
func overrules(f *seen.Fleet, w *seen.Workload, p *answer.Progress, now time.Time) []string {
	policy := f.Policy(w)
	if _, held := policy.HoldAt(now, w.Status.Current); held || p.State == answer.Halted {
		return []string{p.Why}
	}
	return []string{"its turn: it rolls beside the rollouts that are under way"}
}

// order sends the rolling re-admission, and looks at what became of it.
func (o *Orders) order(ctx context.Context, f *seen.Fleet, w *seen.Workload, did Did) Did {
	of := inspect.OfWorkload(w.Ref)
	did = did.with(Rolled, "it gets the new content of "+named(f, w))
	did.Next = "kubectl configstamp wait " + target(of)
	if o.DryRun != None { // the question was the dry run
		return did
	}
	after, warnings, err := o.Cluster.PatchWorkload(ctx, f.Settings, inspect.Patch{Of: of, Body: []byte("{}"), Manager: checksum.RollingManager})
	if err != nil {
		return did.refused(of, err)
	}
	did.Warnings = warnings
	return o.looked(ctx, of, after, w, did)
}

// restart changes the template, as kubectl rollout restart does.
func (o *Orders) restart(ctx context.Context, f *seen.Fleet, w *seen.Workload, did Did) Did {
	of := inspect.OfWorkload(w.Ref)
	clock, err := o.Cluster.Time()
	if err != nil {
		return did.with(Refused, err.Error())
	}
	did = did.with(Restarted, "as with a rollout restart; it gets the new content of "+named(f, w))
	did.Next = "kubectl configstamp wait " + target(of)
	if o.DryRun == Client {
		return did
	}
	text := inTemplate(w.Kind.Template, restartedAt, clock.Format(time.RFC3339))
	after, warnings, err := o.Cluster.PatchWorkload(ctx, f.Settings, inspect.Patch{Of: of, Body: text, Manager: Manager, Dry: o.DryRun == Server})
	if err != nil {
		return did.refused(of, err)
	}
	if did.Warnings = warnings; o.DryRun == Server {
		return did
	}
	return o.looked(ctx, of, after, w, did)
}

// looked asks the webhook whether a workload is in step after an order.
func (o *Orders) looked(ctx context.Context, of inspect.Target, after, before *seen.Workload, did Did) Did {
	outcome := o.Cluster.Ask(ctx, []*seen.Workload{after}, nil)[after.Ref]
	if outcome.Code == seen.InStep && after.Object.Generation != before.Object.Generation {
		return did
	}
	did.Next = "kubectl configstamp why " + target(of)
	if after.Object.Generation == before.Object.Generation {
		return did.with(Refused, "the order was sent, but nothing changed; a dry run now says: "+outcome.Sentence)
	}
	did.Why += "; but whether it is in step now is not known: " + outcome.Sentence
	return did
}

// inTemplate is the merge patch that annotates a pod template, which is at path.
func inTemplate(path []string, key, value string) []byte {
	var inner any = map[string]any{"metadata": map[string]any{"annotations": map[string]string{key: value}}}
	for _, field := range slices.Backward(path) {
		inner = map[string]any{field: inner}
	}
	text, err := json.Marshal(inner)
	if err != nil {
		panic(err) // strings always can be written
	}
	return text
}

// named are the sources for which a workload is out of date, as far as it is known.
func named(f *seen.Fleet, w *seen.Workload) string {
	p := answer.ProgressOf(f, w, time.Time{})
	if len(p.Because) == 0 {
		return "its sources"
	}
	texts := make([]string, 0, len(p.Because))
	for _, source := range p.Because {
		texts = append(texts, source.String())
	}
	return joined(texts)
}

// joined is "a, b and c".
func joined(texts []string) string {
	text := texts[0]
	for i, more := range texts[1:] {
		if i == len(texts)-2 {
			text += " and " + more
		} else {
			text += ", " + more
		}
	}
	return text
}
