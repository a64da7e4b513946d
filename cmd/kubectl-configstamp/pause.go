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

// pauseFlags say what pause and unpause are about.
type pauseFlags struct {
	all      bool
	selector string
	// period is how long a pause lasts; 0: until somebody ends it.
	period time.Duration
	reason string
}

func (f *pauseFlags) add(command *cobra.Command) {
	command.Flags().BoolVarP(&f.all, "all-namespaces", "A", false, "all namespaces in which something is opted in")
	command.Flags().StringVarP(&f.selector, "selector", "l", "", "each workload of the namespace with these labels, such as app=web-app")
}

func (p *plugin) pauseCommand() *cobra.Command {
	var flags pauseFlags
	command := &cobra.Command{
		Use:   "pause WORKLOAD|namespace/NAME",
		Short: "Hold the rollouts of one workload, of a namespace, or everywhere",
		Long: "Holds the rollouts that configstamp would begin. It writes configstamp.dev/pause on\n" +
			"the workload or the Namespace, and notes beside it who paused, and why. What changes\n" +
			"in the meantime rolls once, when the pause ends. unpause restores what the\n" +
			"annotation said before.\n\n" +
			"Rollouts that are under way continue. A changed template (kubectl apply, set image,\n" +
			"rollout restart) still rolls, and so does kubectl configstamp roll. In an incident\n" +
			"pause the Namespace: kubectl rollout undo restores a Deployment's own annotations\n" +
			"too.\n\n" +
			"A tool that applies configstamp.dev/pause itself, such as Flux or Argo CD, takes the\n" +
			"pause back at its next sync: a warning names the tool, so that you can pause there.",
		Example: "  kubectl configstamp pause namespace/shop --for 2h --reason INC-42\n" +
			"  kubectl configstamp pause deployment/web-app\n" +
			"  kubectl configstamp pause -l app=web-app\n" +
			"  kubectl configstamp pause -A --reason INC-42 --dry-run=server",
		Args: cobra.MaximumNArgs(2),
	}
	flags.add(command)
	command.Flags().DurationVar(&flags.period, "for", 0, "how long to pause, such as 2h; without it, until somebody unpauses")
	command.Flags().StringVar(&flags.reason, "reason", "", "why, for the next person on call, such as INC-42")
	return p.orderCommand(command, func(ctx context.Context, o *order, args []string) error { return o.pauseAll(ctx, args, &flags) })
}

func (o *order) pauseAll(ctx context.Context, args []string, flags *pauseFlags) error {
	if flags.period < 0 || flags.period > 0 && flags.period < time.Second {
		return fmt.Errorf("--for=%s: want how long to pause, such as 2h", flags.period)
	}
	targets, err := o.toPause(args, flags, o.optedIn)
	if err != nil {
		return err
	}
	now, err := o.serverTime()
	if err != nil {
		return err
	}
	note := checksum.PauseNote{Wrote: "true", At: at(now), By: o.whoAmI(ctx), Reason: flags.reason}
	if flags.period > 0 {
		note.Wrote = at(now.Add(flags.period))
	}
	pause, _ := pauseIn(note.Wrote)
	err = o.each(targets, func(t *target) error { return o.pause(ctx, t, note, pause, now) })
	if o.changed {
		err = errors.Join(err, o.ownPauses(targets, false, "These still roll, by an annotation of their own:", func(own checksum.Pause, readable bool) bool {
			return readable && !outlasts(own, pause, now)
		}))
		paragraph(o.words(), "", "Rollouts that are under way continue, and a changed template still rolls.")
	}
	return err
}

// each does something with each of some objects. One that fails does not stop the others.
func (o *order) each(targets []*target, do func(*target) error) error {
	var errs []error
	for _, t := range targets {
		errs = append(errs, do(t))
	}
	return errors.Join(errs...)
}

// pause writes a pause, unless the object is paused for as long already.
func (o *order) pause(ctx context.Context, t *target, note checksum.PauseNote, wanted checksum.Pause, now time.Time) error {
	return o.annotate(ctx, t, func() (map[string]*string, *result, error) {
		annotations := t.object().GetAnnotations()
		before, held := annotations[pauseKey]
		own := noteOf(annotations)
		if there, readable := pauseIn(before); held && readable && outlasts(there, wanted, now) {
			by := writtenBy(t.object()) + "; unpause leaves that alone"
			if own != nil {
				by = own.Words() + "; unpause ends that"
			}
			return nil, &result{target: t, did: "unchanged", why: fmt.Sprintf("it is paused already by %s=%s%s", pauseKey, before, by)}, nil
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
			r.overrules = []string{fmt.Sprintf("%s=%s%s; unpause restores that", pauseKey, before, writtenBy(t.object()))}
		}
		o.mayBeWrittenAgain(t, pauseKey)
		text := note.String()
		return map[string]*string{pauseKey: &note.Wrote, checksum.PausedByAnnotation: &text}, r, nil
	})
}

func (p *plugin) unpauseCommand() *cobra.Command {
	var flags pauseFlags
	command := &cobra.Command{
		Use:   "unpause WORKLOAD|namespace/NAME",
		Short: "End a pause that the command pause began",
		Long: "Removes what kubectl configstamp pause wrote, and restores what the annotation said\n" +
			"before. Pauses that were written in another way stay, and are listed. What changed\n" +
			"in the meantime then rolls, in steps.",
		Example: "  kubectl configstamp unpause namespace/shop\n" +
			"  kubectl configstamp unpause deployment/web-app\n" +
			"  kubectl configstamp unpause -A",
		Args: cobra.MaximumNArgs(2),
	}
	flags.add(command)
	return p.orderCommand(command, func(ctx context.Context, o *order, args []string) error { return o.unpauseAll(ctx, args, &flags) })
}

func (o *order) unpauseAll(ctx context.Context, args []string, flags *pauseFlags) error {
	targets, err := o.toPause(args, flags, o.paused)
	if err != nil {
		return err
	}
	if len(targets) == 0 {
		paragraph(o.words(), "", "No Namespace is paused.")
	}
	now, err := o.serverTime()
	if err != nil {
		return err
	}
	err = o.each(targets, func(t *target) error { return o.unpause(ctx, t) })
	return errors.Join(err, o.ownPauses(targets, flags.all, "These are still paused, by an annotation of their own:", func(own checksum.Pause, readable bool) bool {
		return !readable || outlasts(own, checksum.Pause{On: true, Until: now}, now)
	}))
}

// unpause takes back what pause wrote, and nothing else.
func (o *order) unpause(ctx context.Context, t *target) error {
	return o.annotate(ctx, t, func() (map[string]*string, *result, error) {
		annotations := t.object().GetAnnotations()
		value, held := annotations[pauseKey]
		note := noteOf(annotations)
		if note == nil {
			if pause, readable := pauseIn(value); held && (pause.On || !readable) {
				r := &result{target: t, did: "kept", why: fmt.Sprintf("%s=%s was not written by the command pause%s", pauseKey, value, writtenBy(t.object()))}
				if manager := applierOf(t.object(), pauseKey); manager != "" {
					r.next = "change it where " + manager + " reads it"
				} else if o.mayPatch(ctx, t) {
					r.next = "kubectl annotate " + t.words() + " " + pauseKey + "-"
				}
				return nil, r, nil
			}
			var orphan map[string]*string // a note that nothing stands beside
			if _, noted := annotations[checksum.PausedByAnnotation]; noted {
				orphan = map[string]*string{checksum.PausedByAnnotation: nil}
			}
			return orphan, &result{target: t, did: "unchanged", why: "it is not paused"}, nil
		}
		r := &result{target: t, did: "unpaused", changed: true, why: "it was paused" + note.Words() + "; what changed in the meantime rolls now, in steps", wrote: pauseKey + "-"}
		if note.Before != nil {
			r.why = fmt.Sprintf("it was paused%s; %s=%s is restored", note.Words(), pauseKey, *note.Before)
			r.wrote = pauseKey + "=" + *note.Before
		}
		return map[string]*string{pauseKey: note.Before, checksum.PausedByAnnotation: nil}, r, nil
	})
}

// toPause reads the objects that pause and unpause are about. everywhere are those of --all-namespaces.
func (o *order) toPause(args []string, flags *pauseFlags, everywhere func() ([]*target, error)) (targets []*target, err error) {
	kind, name, found := strings.Cut(words(args), "/")
	switch {
	case flags.all && (len(args) > 0 || flags.selector != ""), flags.selector != "" && len(args) > 0:
		return nil, errors.New("want one of WORKLOAD, namespace/NAME, --selector, --all-namespaces")
	case flags.all:
		return everywhere()
	case flags.selector != "":
		unseen, err := o.eachWorkload(o.settings.Kinds.Readmitted(), o.namespace, flags.selector, func(t *target) error {
			object, _, err := t.decode()
			if err == nil && !object.RolledByOwner(o.settings.Kinds) {
				targets = append(targets, t)
			}
			return err
		})
		if o.notSeen(unseen); err == nil && len(targets) == 0 {
			err = fmt.Errorf("no workload in namespace %s has the labels %s", o.namespace, flags.selector)
		}
		return targets, err
	case len(args) == 0:
		return nil, errors.New("want a WORKLOAD, namespace/NAME, --selector or --all-namespaces")
	}
	var t *target
	if found && slices.Contains([]string{"namespace", "namespaces", "ns"}, kind) {
		t, err = o.read("", "namespaces", name)
	} else {
		t, err = o.workload(o.settings.Kinds, o.namespace, args)
	}
	return []*target{t}, err
}

// optedIn reads the Namespaces in which something is opted in: all, or a workload by itself.
func (o *order) optedIn() ([]*target, error) {
	all, err := o.namespaces()
	if err != nil {
		return nil, err
	}
	holds := map[string]bool{}
	selector := checksum.InjectLabel + "=" + checksum.InjectEnabled
	if len(o.settings.Dialects) > 0 { // another product's annotations opt in, too
		selector = ""
	}
	unseen, err := o.eachWorkload(o.settings.Kinds.Readmitted(), "", selector, func(t *target) error {
		object, _, err := t.decode()
		if err != nil {
			return err
		}
		served, _ := checksum.Served(checksum.Candidate{Inject: object.Labels[checksum.InjectLabel], Foreign: object.Foreign(o.settings.Dialects)}, checksum.Namespace{})
		holds[t.Namespace] = holds[t.Namespace] || served
		return nil
	})
	o.notSeen(unseen)
	all = slices.DeleteFunc(all, func(t *target) bool {
		namespace := o.settings.namespaceOf(t.object())
		namespace.OptedIn = namespace.OptedIn || holds[t.Name]
		return !o.settings.OptsIn(t.Name, knownNamespace{Namespace: namespace})
	})
	if err == nil && len(all) == 0 {
		err = errors.New("nothing says that a namespace is opted in; where the installation lists its namespaces, name them, as in namespace/shop")
	}
	return all, err
}

// paused reads the Namespaces that have a pause, whoever wrote it, or a note of one.
func (o *order) paused() ([]*target, error) {
	all, err := o.namespaces()
	return slices.DeleteFunc(all, func(t *target) bool {
		annotations := t.object().GetAnnotations()
		value, set := annotations[pauseKey]
		_, noted := annotations[checksum.PausedByAnnotation]
		return !noted && (!set || value == "false")
	}), err
}

// namespaces reads all Namespaces.
func (o *order) namespaces() (all []*target, err error) {
	unseen, err := o.list("", "", []string{"namespaces"}, func(info *resource.Info) error {
		all = append(all, &target{Info: info})
		return nil
	})
	if err == nil && len(unseen) > 0 {
		err = fmt.Errorf("you have no right to list namespaces (%s): name one, as in namespace/shop", unseen[0])
	}
	return all, err
}

func (s *clusterSettings) namespaceOf(object *unstructured.Unstructured) checksum.Namespace {
	return checksum.NamespaceOf(&metav1.ObjectMeta{Labels: object.GetLabels(), Annotations: object.GetAnnotations(), DeletionTimestamp: object.GetDeletionTimestamp()}, s.OptIn)
}

// ownPauses lists workloads whose own annotation counts for more than their Namespace's, if it is what is asked for: those
// of the Namespaces among the targets, or everywhere.
func (o *order) ownPauses(targets []*target, everywhere bool, sentence string, asked func(own checksum.Pause, readable bool) bool) error {
	within := map[string]bool{}
	for _, t := range targets {
		if t.kind == nil {
			within[t.Name] = true
		}
	}
	if len(within) == 0 && !everywhere {
		return nil
	}
	place := ""
	if len(targets) == 1 && !everywhere {
		place = targets[0].Name
	}
	var found []string
	unseen, err := o.eachWorkload(o.settings.Kinds.Readmitted(), place, "", func(t *target) error {
		annotations := t.object().GetAnnotations()
		value, set := annotations[pauseKey]
		declined := t.object().GetLabels()[checksum.InjectLabel] == checksum.InjectDisabled
		if own, readable := pauseIn(value); set && !declined && (everywhere || within[t.Namespace]) && asked(own, readable) {
			text := t.words() + ": " + pauseKey + "=" + value
			if note := noteOf(annotations); note != nil {
				text += ", paused" + note.Words()
			}
			found = append(found, text)
		}
		return nil
	})
	slices.Sort(found)
	list(o.words(), sentence, found)
	o.notSeen(unseen)
	return err
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

// outlasts reports whether one pause holds at least as long as another, from now on.
func outlasts(one, other checksum.Pause, now time.Time) bool {
	if !one.On || !one.Until.IsZero() && !now.Before(one.Until) {
		return false
	}
	return one.Until.IsZero() || other.On && !other.Until.IsZero() && !one.Until.Before(other.Until)
}

// writtenBy says who wrote the pause of an object, "" if that is not known.
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
