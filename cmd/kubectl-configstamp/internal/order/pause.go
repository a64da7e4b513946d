package order

import (
	"context"
	"fmt"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/answer"
	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/inspect"
)

// Pause is an order to hold rollouts.
type Pause struct {
	// For is how long; 0: until somebody ends it.
	For time.Duration
	// Reason is for the next one on call.
	Reason string
	// By is who orders it.
	By string
}

// Pause holds rollouts of one object by its annotation. Where it is held for as long
// already, nothing is written.
func (o *Orders) Pause(ctx context.Context, of inspect.Target, order Pause) Did {
	return o.annotate(ctx, of, func(meta *inspect.Metadata) (edit, Did) {
		did := o.did(of)
		now, err := o.Cluster.Time()
		if err != nil {
			return nil, did.with(Refused, err.Error())
		}
		value := order.value(now)
		wanted, _ := pauseIn(value)
		before, held := meta.Annotations[pauseKey]
		mine := noteOf(meta.Annotations)
		if there, readable := pauseIn(before); held && readable && outlasts(there, wanted, now) {
			if mine != nil {
				return nil, did.with(Unchanged, fmt.Sprintf("it is paused already by %s=%s%s; unpause ends that", pauseKey, before, mine.Words()))
			}
			return nil, did.with(Unchanged, fmt.Sprintf("it is paused already by %s=%s%s; unpause leaves that alone", pauseKey, before, by(meta, now)))
		}
		n := checksum.PauseNote{Wrote: value, At: now.Format(time.RFC3339), By: order.By, Reason: order.Reason}
		switch {
		case mine != nil:
			n.Before = mine.Before
		case held:
			n.Before = &before
			did.Overrules = append(did.Overrules, fmt.Sprintf("%s=%s%s; unpause restores that", pauseKey, before, by(meta, now)))
		}
		text := n.String()
		change := edit{pauseKey: &value, checksum.PausedByAnnotation: &text}
		did.Wrote, did.MayBeUndoneBy = change.of(pauseKey), meta.Applier(pauseKey)
		did.Next = "kubectl configstamp unpause " + target(of)
		if did = did.with(Paused, "it lasts until somebody ends it"); order.For > 0 {
			did.Why = "it lasts until " + value
		}
		return change, did
	})
}

// value is what a pause writes.
func (p *Pause) value(now time.Time) string {
	if p.For == 0 {
		return "true"
	}
	return now.Add(p.For).UTC().Format(time.RFC3339)
}

// Unpause takes back what Pause wrote on one object, and nothing else.
func (o *Orders) Unpause(ctx context.Context, of inspect.Target) Did {
	return o.annotate(ctx, of, func(meta *inspect.Metadata) (edit, Did) {
		did := o.did(of)
		now, err := o.Cluster.Time()
		if err != nil {
			return nil, did.with(Refused, err.Error())
		}
		value, held := meta.Annotations[pauseKey]
		mine := noteOf(meta.Annotations)
		if mine == nil {
			if pause, readable := pauseIn(value); held && (pause.On || !readable) {
				did.Next = "kubectl annotate " + target(of) + " " + pauseKey + "-"
				if applier := meta.Applier(pauseKey); applier != "" {
					did.Next = "change it where " + applier + " reads it"
				}
				return nil, did.with(Kept, fmt.Sprintf("%s=%s was not written by the command pause%s", pauseKey, value, by(meta, now)))
			}
			return stale(meta), did.with(Unchanged, "it is not paused")
		}
		change := edit{pauseKey: mine.Before, checksum.PausedByAnnotation: nil}
		did.Wrote = change.of(pauseKey)
		if did = did.with(Unpaused, "it was paused"+mine.Words()); mine.Before != nil {
			did.Why += fmt.Sprintf("; %s=%s is restored", pauseKey, *mine.Before)
		}
		return change, did
	})
}

// stale takes away a note that nothing stands beside: somebody else ended the pause.
func stale(meta *inspect.Metadata) edit {
	if _, found := meta.Annotations[checksum.PausedByAnnotation]; !found {
		return nil
	}
	return edit{checksum.PausedByAnnotation: nil}
}

// by says who wrote the pause that stands on an object, "" where that is not known.
func by(meta *inspect.Metadata, now time.Time) string {
	write := meta.Writer(pauseKey)
	if write.Manager == "" {
		return ""
	}
	return fmt.Sprintf(" (%s wrote it %s ago)", write.Manager, answer.Ago(now, write.At))
}

// target names an object for a command.
func target(of inspect.Target) string {
	if of.Namespace() == "" {
		return of.String()
	}
	return of.String() + " -n " + of.Namespace()
}
