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
	"github.com/configstamp/configstamp/internal/workload"
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
			"With configstamp.dev/mode=observe this is how a person approves a change: the\n" +
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
	return p.orderCommand(command, func(ctx context.Context, o *order, args []string) error {
		switch {
		case all:
			return o.rollUsers(ctx, args, yes)
		case namesSource(args):
			return fmt.Errorf("%s is not a workload; --all rolls every workload that uses it", words(args))
		}
		return o.roll(ctx, args)
	})
}

func (o *order) roll(ctx context.Context, args []string) error {
	t, err := o.workload(o.settings.Kinds, o.namespace, args)
	if err != nil {
		return err
	}
	s, err := o.stepOf(ctx, t)
	if err != nil {
		return err
	}
	return o.take(ctx, s)
}

// step is what roll does with one workload.
type step struct {
	*target
	// manager is the field manager of the patch, "" if there is nothing to do.
	manager string
	// did is one word: rolled, restarted, unchanged.
	did string
	// why says why nothing is to be done, or why a workload is restarted.
	why string
	// news are the sources of which it gets new content, as far as they are known before.
	news []string
	// overrules are the settings that would hold the workload.
	overrules []string
	next      string
	// rehearsed is the workload as the webhook's answer has it.
	rehearsed *target
	// brief has take print no advice.
	brief  bool
	answer outcome
}

// stepOf asks the webhook, by a dry run, what a rolling re-admission would do. An order that would roll nothing, and one
// that the webhook does not answer for, is not sent.
func (o *order) stepOf(ctx context.Context, t *target) (*step, error) {
	after, warnings, err := t.patch(ctx, types.MergePatchType, []byte("{}"), patchOptions(serverDryRun, checksum.RollingManager))
	if err != nil {
		return nil, fmt.Errorf("nothing was sent, as the dry run that asks the webhook was refused: %w", err)
	}
	answer := outcomeIn(warnings)
	s := &step{target: t, did: "unchanged", answer: answer, rehearsed: after}
	switch answer.Code {
	case reason.OutcomeInStep:
		s.why, s.next = "it is in step, so there is nothing to roll", "to restart it anyway: kubectl rollout restart "+t.words()
	case reason.OutcomeWouldRecord:
		s.why, s.next = "records of its sources are missing, so nothing is known to have changed", "kubectl configstamp why "+t.words()
	case reason.OutcomeWouldRoll:
		s.manager, s.did, s.news, s.overrules = checksum.RollingManager, "rolled", newsOf(t, after), o.holds(t)
	case reason.OutcomeObserved:
		s.restart("")
		s.overrules = []string{"configstamp.dev/mode=observe"}
	case reason.NoOutcome:
		err = fmt.Errorf("%s: nothing was sent: %s", t.place(), silence(t))
	default:
		err = fmt.Errorf("%s: nothing was sent: %s (kubectl configstamp why %s)", t.place(), answer.Sentence, t.words())
	}
	return s, err
}

// restart has a step restart the workload, as kubectl rollout restart does.
func (s *step) restart(why string) {
	s.manager, s.did, s.why = orderManager, "restarted", why
}

// silence says why the webhook may not have answered.
func silence(t *target) string {
	if t.object().GetLabels()[checksum.InjectLabel] == checksum.InjectDisabled {
		return "configstamp leaves it alone, as its label " + checksum.InjectLabel + " is " + checksum.InjectDisabled
	}
	return "the webhook said nothing: it is stopped, or cannot be reached, or does not serve this workload (kubectl configstamp doctor looks for it)"
}

// take carries out a step, and prints what became of the workload.
func (o *order) take(ctx context.Context, s *step) error {
	r := &result{target: s.target, did: s.did, why: s.why, overrules: s.overrules, next: s.next}
	if s.manager == "" {
		return o.say(r)
	}
	after, err := o.sendStep(ctx, s)
	if err != nil {
		return err
	}
	news := s.news
	if o.dryRun == noDryRun {
		if news = newsOf(s.target, after); len(news) == 0 && s.manager == checksum.RollingManager {
			return fmt.Errorf("%s: the order was sent, but nothing changed: the webhook did not answer in time; try again", s.place())
		}
	}
	if r.target, r.changed = after, true; !s.brief {
		r.next = "kubectl configstamp wait " + s.words()
	}
	r.why = "it gets the new content of " + cmp.Or(joined(news), "its sources")
	if s.did == "restarted" {
		r.why = "as with a rollout restart; " + cmp.Or(s.why, r.why)
	}
	r.why += after.waits()
	return o.say(r)
}

// sendStep sends the patch of a step. A re-admission was rehearsed already.
func (o *order) sendStep(ctx context.Context, s *step) (after *target, err error) {
	switch {
	case s.manager == orderManager:
		now, err := o.serverTime()
		if err != nil {
			return nil, err
		}
		return o.send(ctx, s.target, types.MergePatchType, inTemplate(s.kind.Template, restartedAt, at(now)), s.manager)
	case o.dryRun == serverDryRun:
		return s.rehearsed, nil
	}
	return o.send(ctx, s.target, types.MergePatchType, []byte("{}"), s.manager)
}

// newsOf are the sources whose stamps differ between two states of a workload, sorted.
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

// holds says which setting would hold a workload now, beside its turn.
func (o *order) holds(t *target) []string {
	object, raw, err := t.decode()
	if err != nil {
		return nil
	}
	policy := o.policyOf(object, checksum.Source{})
	status, _ := t.kind.Status(raw) // what cannot be read holds nothing
	now, err := o.serverTime()
	hold, held := policy.HoldAt(now, status.Current)
	if err != nil || !held {
		return nil
	}
	text := settingOf(&policy, hold.Reason.String())
	if !hold.Until.IsZero() {
		text += " until " + at(hold.Until)
	}
	return []string{text}
}

// settingOf names a setting of a workload, and where it stands if that is not the workload.
func settingOf(policy *checksum.Policy, name string) string {
	text := "configstamp.dev/" + name
	switch origin, _ := policy.OriginOf(name); origin {
	case checksum.OfNamespace:
		text += " (on the Namespace)"
	case checksum.OfFlag:
		text += " (a flag of the cluster)"
	case checksum.OfWorkload, checksum.OfSource:
	}
	return text
}

// policyOf is what counts for a workload of the namespace, as far as the user may know: who may not read the Namespace
// does not know its settings. asked is a source that exists.
func (o *order) policyOf(object *workload.Object, asked checksum.Source) checksum.Policy {
	if o.onNamespace == nil {
		o.onNamespace = map[string]string{}
		if t, err := o.read("", "namespaces", object.Namespace); err == nil {
			o.onNamespace = o.settings.namespaceOf(t.object()).Settings
		}
	}
	return o.settings.PolicyOf(object, o.onNamespace, func(kind checksum.Kind) []string {
		if kind != asked.Kind {
			return nil
		}
		return []string{asked.Name}
	})
}

// waits says that no pod starts by a new template, and why, "" if pods do.
func (t *target) waits() string {
	_, raw, err := t.decode()
	if err != nil {
		return ""
	}
	if status, _ := t.kind.Status(raw); status.Waits != "" {
		return "; no pod starts by that: " + status.Waits
	}
	return ""
}

// inTemplate is the merge patch that annotates a pod template, which is at path.
func inTemplate(path []string, key, value string) []byte {
	var inner any = map[string]any{"metadata": map[string]any{"annotations": map[string]string{key: value}}}
	for _, field := range slices.Backward(path) {
		inner = map[string]any{field: inner}
	}
	return asJSONText(inner)
}
