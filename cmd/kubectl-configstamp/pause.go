package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/configstamp/configstamp/checksum"
)

const pauseKey = checksum.PauseAnnotation

func (p *plugin) pauseCommand() *cobra.Command {
	var all bool
	var period time.Duration
	var reason string
	command := &cobra.Command{
		Use:   "pause WORKLOAD|namespace/NAME",
		Short: "Hold the rollouts of one workload, of a namespace, or everywhere",
		Long: "Holds the rollouts that configstamp would begin. It writes configstamp.dev/pause on\n" +
			"the workload or the Namespace, and records who paused, and why. What changes\n" +
			"in the meantime rolls once, when the pause ends. unpause restores the\n" +
			"previous value of the annotation.\n\n" +
			"Rollouts that are under way continue. A changed template (kubectl apply, set image,\n" +
			"rollout restart) still rolls, and so do kubectl configstamp roll, and workloads of\n" +
			"the Namespace whose own configstamp.dev/pause says otherwise. In an incident, pause\n" +
			"the Namespace: kubectl rollout undo restores a Deployment's own annotations too.\n\n" +
			"A tool that applies configstamp.dev/pause itself, such as Flux or Argo CD, ends the\n" +
			"pause at its next sync: a warning names the tool, so that you can pause there.",
		Example: "  kubectl configstamp pause namespace/shop --for 2h --reason INC-42\n" +
			"  kubectl configstamp pause deployment/web-app\n" +
			"  kubectl configstamp pause -A --reason INC-42 --dry-run=server",
		Args: cobra.MaximumNArgs(2),
	}
	command.Flags().BoolVarP(&all, "all-namespaces", "A", false, "all Namespaces in which something is opted in")
	command.Flags().DurationVar(&period, "for", 0, "how long to pause, such as 2h; without it, until somebody unpauses")
	command.Flags().StringVar(&reason, "reason", "", "why, for the next person on call, such as INC-42")
	return p.orderCommand(command, func(ctx context.Context, o *task, args []string) error {
		if period < 0 || period > 0 && period < time.Second {
			return fmt.Errorf("--for=%s: want how long to pause, such as 2h", period)
		}
		var optedIn func(*target) bool
		if all {
			var err error
			if optedIn, err = o.optedIn(); err != nil {
				return err
			}
		}
		targets, err := o.toPause(args, all, optedIn)
		if err != nil {
			return err
		}
		if len(targets) == 0 {
			return errors.New("nothing is opted in by a label; where the installation lists its namespaces, name them, as in namespace/shop")
		}
		now, err := o.serverTime()
		if err != nil {
			return err
		}
		note := checksum.PauseNote{Wrote: "true", At: at(now), By: o.whoAmI(ctx), Reason: reason}
		if period > 0 {
			note.Wrote = at(now.Add(period))
		}
		err = each(targets, func(t *target) error { return o.pause(ctx, t, note, now) })
		if o.changed {
			paragraph(o.words(), "", "Rollouts that are under way continue, and a changed template still rolls.")
		}
		return err
	})
}

// each does something with each of some objects. One that fails does not stop the others.
func each(targets []*target, do func(*target) error) error {
	var errs []error
	for _, t := range targets {
		errs = append(errs, do(t))
	}
	return errors.Join(errs...)
}

// pause writes a pause, unless the object is paused for as long already.
func (o *task) pause(ctx context.Context, t *target, note checksum.PauseNote, now time.Time) error {
	wanted, _ := pauseIn(note.Wrote)
	return o.annotate(ctx, t, func() (map[string]*string, *result) {
		annotations := t.object().GetAnnotations()
		before, held := annotations[pauseKey]
		own := noteOf(annotations)
		if there, readable := pauseIn(before); held && readable && outlasts(there, wanted, now) {
			by := writtenBy(t.object()) + "; unpause leaves that alone"
			if own != nil {
				by = own.Words() + "; unpause ends that"
			}
			return nil, &result{target: t, did: "unchanged", why: fmt.Sprintf("it is paused already by %s=%s%s", pauseKey, before, by)}
		}
		r := &result{
			target: t, did: "paused", changed: true, why: "it lasts until somebody ends it",
			wrote: pauseKey + "=" + note.Wrote, next: "kubectl configstamp unpause " + t.words(),
		}
		if !wanted.Until.IsZero() {
			r.why = "it lasts until " + note.Wrote
		}
		switch note.Before = nil; {
		case own != nil:
			note.Before = own.Before
		case held:
			note.Before = &before
			r.why += fmt.Sprintf("; unpause restores %s=%s%s", pauseKey, before, writtenBy(t.object()))
		}
		o.mayBeWrittenAgain(t, pauseKey)
		text := note.String()
		return map[string]*string{pauseKey: &note.Wrote, checksum.PausedByAnnotation: &text}, r
	})
}

func (p *plugin) unpauseCommand() *cobra.Command {
	var all bool
	command := &cobra.Command{
		Use:   "unpause WORKLOAD|namespace/NAME",
		Short: "End a pause that the command pause began",
		Long: "Removes what kubectl configstamp pause wrote, and restores the previous value of the\n" +
			"annotation. Pauses that were written in another way stay, and are listed. What\n" +
			"changed in the meantime then rolls, in steps.",
		Example: "  kubectl configstamp unpause namespace/shop\n" +
			"  kubectl configstamp unpause deployment/web-app\n" +
			"  kubectl configstamp unpause -A",
		Args: cobra.MaximumNArgs(2),
	}
	command.Flags().BoolVarP(&all, "all-namespaces", "A", false, "all Namespaces that are paused")
	return p.orderCommand(command, func(ctx context.Context, o *task, args []string) error {
		targets, err := o.toPause(args, all, o.paused)
		if err != nil {
			return err
		}
		if len(targets) == 0 {
			paragraph(o.words(), "", "No Namespace is paused.")
		}
		return each(targets, func(t *target) error { return o.unpause(ctx, t) })
	})
}

// unpause takes back what pause wrote, and nothing else.
func (o *task) unpause(ctx context.Context, t *target) error {
	return o.annotate(ctx, t, func() (map[string]*string, *result) {
		annotations := t.object().GetAnnotations()
		value, held := annotations[pauseKey]
		note := noteOf(annotations)
		if note == nil {
			if pause, readable := pauseIn(value); held && (pause.On || !readable) {
				r := &result{target: t, did: "kept", why: fmt.Sprintf("%s=%s was not written by the command pause%s", pauseKey, value, writtenBy(t.object()))}
				if tool := appliedBy(t.object(), pauseKey); tool != "" {
					r.next = "change it where " + tool + " reads it"
				} else if o.mayPatch(ctx, t) {
					r.next = "kubectl annotate " + t.words() + " " + pauseKey + "-"
				}
				return nil, r
			}
			var orphan map[string]*string // a note that nothing stands beside
			if _, noted := annotations[checksum.PausedByAnnotation]; noted {
				orphan = map[string]*string{checksum.PausedByAnnotation: nil}
			}
			return orphan, &result{target: t, did: "unchanged", why: "it is not paused"}
		}
		r := &result{target: t, did: "unpaused", changed: true, why: "it was paused" + note.Words() + "; what changed in the meantime rolls now, in steps", wrote: pauseKey + "-"}
		if note.Before != nil {
			r.why = fmt.Sprintf("it was paused%s; %s=%s is restored", note.Words(), pauseKey, *note.Before)
			r.wrote = pauseKey + "=" + *note.Before
		}
		return map[string]*string{pauseKey: note.Before, checksum.PausedByAnnotation: nil}, r
	})
}

// toPause reads what pause and unpause are about: an object, or with all the Namespaces that are concerned.
func (o *task) toPause(args []string, all bool, concerned func(*target) bool) (targets []*target, err error) {
	if all == (len(args) > 0) {
		return nil, errors.New("want one of WORKLOAD, namespace/NAME, --all-namespaces")
	}
	if all {
		unseen, err := o.list("", "", []string{"namespaces"}, func(info *resource.Info) error {
			if t := (&target{Info: info}); concerned(t) {
				targets = append(targets, t)
			}
			return nil
		})
		if err == nil && len(unseen) > 0 {
			err = fmt.Errorf("you have no right to list namespaces (%s): name one, as in namespace/shop", unseen[0])
		}
		return targets, err
	}
	var t *target
	if kind, name, found := strings.Cut(words(args), "/"); found && slices.Contains([]string{"namespace", "namespaces", "ns"}, kind) {
		t, err = o.read("", "namespaces", name)
	} else {
		t, err = o.workload(o.settings.Kinds, o.namespace, args)
	}
	if err != nil {
		return nil, err
	}
	return []*target{t}, nil
}

// optedIn returns whether something in a Namespace is opted in: all of it, or a workload by its own label. If other
// products' annotations opt workloads in, something may be in every one.
func (o *task) optedIn() (func(*target) bool, error) {
	alone := map[string]bool{}
	unseen, err := o.eachSelected(o.settings.Kinds.Readmitted(), "", checksum.InjectLabel+"="+checksum.InjectEnabled, func(t *target) error {
		alone[t.Namespace] = true
		return nil
	})
	o.notSeen(unseen)
	return func(t *target) bool {
		namespace := o.settings.namespaceOf(t.object())
		namespace.OptedIn = namespace.OptedIn || len(o.settings.Dialects) > 0 || alone[t.Name]
		return o.settings.OptsIn(t.Name, knownNamespace{Namespace: namespace})
	}, err
}

// paused returns whether a Namespace has a pause, whatever wrote it, or a note of one.
func (o *task) paused(t *target) bool {
	annotations := t.object().GetAnnotations()
	value, set := annotations[pauseKey]
	_, noted := annotations[checksum.PausedByAnnotation]
	return noted || set && value != "false"
}

func (s *clusterSettings) namespaceOf(object *unstructured.Unstructured) checksum.Namespace {
	return checksum.NamespaceOf(&metav1.ObjectMeta{Labels: object.GetLabels(), Annotations: object.GetAnnotations(), DeletionTimestamp: object.GetDeletionTimestamp()}, s.OptIn)
}

// noteOf reads the note beside a pause, nil if the command pause has not written what is there.
func noteOf(annotations map[string]string) *checksum.PauseNote {
	if note := checksum.PauseNoteIn(annotations); note != nil && note.Stands(annotations) {
		return note
	}
	return nil
}

// pauseIn reads a value of configstamp.dev/pause. readable is false if it cannot be read.
func pauseIn(value string) (pause checksum.Pause, readable bool) {
	policy := checksum.DefaultPolicy().With(checksum.Level{Origin: checksum.OfWorkload, Annotations: map[string]string{pauseKey: value}})
	return policy.Pause, len(policy.Faults) == 0
}

// outlasts returns whether one pause holds at least as long as another, from now on.
func outlasts(one, other checksum.Pause, now time.Time) bool {
	if !one.On || !one.Until.IsZero() && !now.Before(one.Until) {
		return false
	}
	return one.Until.IsZero() || other.On && !other.Until.IsZero() && !one.Until.Before(other.Until)
}

// writtenBy says what wrote the pause of an object, "" if that is not known.
func writtenBy(object *unstructured.Unstructured) string {
	entry := writerOf(object, pauseKey)
	if entry == nil {
		return ""
	}
	text := " (written by " + entry.Manager
	if entry.Time != nil {
		text += " at " + at(entry.Time.Time)
	}
	return text + ")"
}
