package order

import (
	"context"
	"fmt"
	"time"

	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/answer"
	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/inspect"
	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/seen"
	"github.com/configstamp/configstamp/internal/rollout"
)

// Resume has the halted change of a source go on: failures of rollouts that began until
// now stop nothing. f is a fleet of the workloads that the source counts for.
func (o *Orders) Resume(ctx context.Context, f *seen.Fleet, at rollout.SourceRef, now time.Time) Did {
	of := inspect.OfSource(at.Namespace, at.Source)
	return o.annotate(ctx, of, func(meta *inspect.Metadata) (edit, Did) {
		did := o.did(of)
		clock, err := o.Cluster.Time()
		if err != nil {
			return nil, did.with(Refused, err.Error())
		}
		// The API server's clock, because a time that is more than a minute ahead of it
		// resumes nothing. It tells whole seconds: what failed in this one counts too.
		value := clock.Add(time.Second).Format(time.RFC3339)
		change := edit{resumeKey: &value}
		did.Wrote, did.MayBeUndoneBy = change.of(resumeKey), meta.Applier(resumeKey)
		resumed(&did, f, now)
		did.Next = "kubectl configstamp wait " + target(of)
		return change, did
	})
}

// resumed says what that lets go, and what goes on waiting all the same.
func resumed(did *Did, f *seen.Fleet, now time.Time) {
	halted, failed := 0, 0
	for _, w := range f.Workloads {
		p := answer.ProgressOf(f, w, now)
		text := fmt.Sprintf("%s: %s", p.Workload, p.Why)
		switch p.State {
		case answer.Halted:
			halted++
			did.Overrules = append(did.Overrules, text)
		case answer.Failed:
			failed++
		case answer.Held, answer.Observed, answer.Unknown:
			did.Overruled = append(did.Overruled, fmt.Sprintf("%s is %s: %s", p.Workload, p.State, p.Why))
		case answer.Done, answer.Rolling, answer.Waiting, answer.Suspended, answer.Unserved:
		}
	}
	*did = did.with(Resumed, fmt.Sprintf("%d halted workloads go on, in steps; the next failure halts them again", halted))
	switch halted {
	case 1:
		did.Why = "1 halted workload goes on; the next failure halts the change again"
	case 0:
		did.Why = "no workload seems to be halted by it; failures of rollouts that have already begun do not halt it"
	}
	if failed > 0 {
		did.Why += fmt.Sprintf(". Failed workloads (%d) stay as they are", failed)
	}
}
