package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/reason"
)

// restartedAt is the annotation by which kubectl rollout restart changes a template.
const restartedAt = "kubectl.kubernetes.io/restartedAt"

func (p *plugin) rollCommand() *cobra.Command {
	var all, yes bool
	command := &cobra.Command{
		Use:   "roll WORKLOAD | roll SOURCE --all",
		Short: "Roll workloads to the new content now, whatever holds them",
		Long: "Rolls one workload now, if it is out of date. It does not wait for its turn, and is\n" +
			"not held by pause, window, min-interval or a halt. If nothing has changed, nothing\n" +
			"rolls: a dry run finds this out first.\n\n" +
			"With configstamp.dev/mode=observe, this is how a user approves a change: the\n" +
			"workload is restarted, as with kubectl rollout restart, and gets the new content.\n\n" +
			"With --all everything that uses a ConfigMap or Secret rolls now, all at once: after\n" +
			"a leaked password, for example, once the Secret holds a new one. Workloads that\n" +
			"configstamp does not roll for this source are restarted. The command lists what it\n" +
			"will do, and asks. If one workload fails, the others still roll.",
		Example: "  kubectl configstamp roll deployment/web-app\n" +
			"  kubectl configstamp roll sts/db -n shop --dry-run=server\n" +
			"  kubectl configstamp roll secret/db --all --dry-run=client\n" +
			"  kubectl configstamp roll secret/db --all --yes",
		Args: cobra.RangeArgs(1, 2),
	}
	command.Flags().BoolVar(&all, "all", false, "roll every workload that uses SOURCE")
	command.Flags().BoolVar(&yes, "yes", false, "with --all: do not ask")
	return p.orderCommand(command, func(ctx context.Context, o *task, args []string) error {
		switch {
		case all:
			return o.rollUsers(ctx, args, yes)
		case namesSource(args):
			return fmt.Errorf("%s is not a workload; --all rolls every workload that uses it", words(args))
		}
		return o.roll(ctx, args)
	})
}

func (o *task) roll(ctx context.Context, args []string) error {
	t, err := o.workload(o.settings.Kinds, o.namespace, args)
	if err != nil {
		return err
	}
	s, err := o.stepOf(ctx, t)
	if err != nil {
		return err
	}
	if s.body != nil {
		s.next = "kubectl configstamp wait " + s.words()
	}
	return o.take(ctx, s)
}

// step is what roll does with one workload.
type step struct {
	*target
	// body is the patch that is sent, and manager its field manager; nil if there is nothing to do.
	body    []byte
	manager string
	// did is one word: rolled, restarted, unchanged.
	did string
	// why says why nothing is to be done, or why a workload is restarted.
	why  string
	next string
	// rehearsed is the workload as the webhook's answer has it.
	rehearsed *target
	answer    outcome
}

// stepOf asks the webhook, by a dry run, what a rolling re-admission would do. An order that would roll nothing, and one
// that the webhook does not answer for, is not sent.
func (o *task) stepOf(ctx context.Context, t *target) (s *step, err error) {
	s = &step{target: t, did: "unchanged"}
	s.rehearsed, s.answer, err = t.ask(ctx)
	switch {
	case err != nil:
		return s, fmt.Errorf("nothing was sent, as the dry run that asks the webhook was refused: %w", err)
	case s.answer.Code == reason.OutcomeInStep:
		s.why, s.next = "it is in step, so there is nothing to roll", "to restart it anyway: kubectl rollout restart "+t.words()
	case s.answer.Code == reason.OutcomeWouldRecord:
		s.why, s.next = "records of its sources are missing, so nothing is known to have changed", "kubectl configstamp why "+t.words()
	case s.answer.Code == reason.OutcomeWouldRoll:
		s.did, s.manager, s.body = "rolled", checksum.RollingManager, []byte("{}")
	case s.answer.Code == reason.OutcomeObserved:
		err = o.restart(s, "its mode is observe")
	default:
		err = fmt.Errorf("%s: nothing was sent: %s (kubectl configstamp why %s)", t.place(), s.answer.Sentence, t.words())
	}
	return s, err
}

// restart has a step restart the workload, as kubectl rollout restart does.
func (o *task) restart(s *step, why string) error {
	now, err := o.serverTime()
	s.did, s.why, s.next = "restarted", why, ""
	s.manager, s.body = orderManager, inTemplate(s.kind.Template, restartedAt, at(now))
	return err
}

// take carries out a step, and prints what became of the workload.
func (o *task) take(ctx context.Context, s *step) error {
	if s.body == nil {
		return o.say(&result{target: s.target, did: s.did, why: s.why, next: s.next})
	}
	after := s.rehearsed
	if o.dryRun == noDryRun || after == nil {
		var err error
		if after, err = o.send(ctx, s.target, types.MergePatchType, s.body, s.manager); err != nil {
			return err
		}
	}
	news := newsOf(s.target, after)
	if len(news) == 0 && s.did == "rolled" {
		return fmt.Errorf("%s: the order was sent, but nothing changed: the webhook did not answer in time; try again", s.place())
	}
	why := "it gets the new content of " + cmp.Or(joined(news), "its sources")
	if s.did == "restarted" {
		why = "as with a rollout restart; " + s.why
	}
	return o.say(&result{target: after, did: s.did, changed: true, why: why, next: s.next})
}

// newsOf returns the sources whose stamps differ between two states of a workload, sorted.
func newsOf(before, after *target) (sources []string) {
	stamps := func(t *target) map[string]string {
		annotations, _, _ := unstructured.NestedStringMap(t.object().Object, append(slices.Clone(t.kind.Template), "metadata", "annotations")...)
		return checksum.Stamps(annotations)
	}
	was := stamps(before)
	for key, stamp := range stamps(after) {
		if source, whole := checksum.StampedSource(key); whole && was[key] != stamp {
			sources = append(sources, source.String())
		}
	}
	slices.Sort(sources)
	return sources
}

// inTemplate is the merge patch that annotates a pod template, which is at path.
func inTemplate(path []string, key, value string) []byte {
	var inner any = map[string]any{"metadata": map[string]any{"annotations": map[string]string{key: value}}}
	for _, field := range slices.Backward(path) {
		inner = map[string]any{field: inner}
	}
	return asJSONText(inner)
}
