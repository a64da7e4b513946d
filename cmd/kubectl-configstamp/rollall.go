package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/workload"
)

// rollUsers rolls everything that uses a source. A workload that fails does not stop the others.
func (o *order) rollUsers(ctx context.Context, args []string, yes bool) error {
	source, err := sourceOf(args)
	if err != nil {
		return err
	}
	t, err := o.source(source)
	if err != nil {
		return err
	}
	ofSource := checksum.SourcePolicyOf(t.object().GetAnnotations())
	partly := ofSource != nil && (ofSource.Ignore || len(ofSource.IgnoreKeys) > 0) // so that a change may count for nobody
	var steps []*step
	var errs []error
	unseen, err := o.eachWorkload(o.settings.Kinds, o.namespace, "", func(t *target) error {
		s, err := o.stepOfUser(ctx, t, source, partly)
		if err != nil {
			errs = append(errs, err)
		} else if s != nil {
			steps = append(steps, s)
		}
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	if len(unseen) > 0 {
		o.notSeen(unseen)
		errs = append(errs, errors.New("not all kinds of workloads could be looked at: what uses "+source.String()+" there keeps its pods"))
	}
	slices.SortStableFunc(steps, func(a, b *step) int { return strings.Compare(a.Name, b.Name) })
	todo := o.listSteps(source, steps, errs)
	if len(todo) == 0 || o.dryRun == clientDryRun {
		return errors.Join(errs...)
	}
	if o.dryRun == noDryRun && !yes {
		if err := o.confirm(fmt.Sprintf("Roll %s now?", counted(len(todo), "workload", "workloads"))); err != nil {
			return err
		}
	}
	for _, s := range todo {
		if err := ctx.Err(); err != nil {
			return errors.Join(append(errs, fmt.Errorf("%s, and those after it: nothing was sent: %w", s.place(), err))...)
		}
		s.overrules, s.brief = nil, true // the list has said that
		if err := o.take(ctx, s); err != nil {
			errs = append(errs, err)
		}
	}
	if o.changed {
		paragraph(o.words(), "", "Next: kubectl configstamp wait "+t.words())
	}
	return errors.Join(errs...)
}

// stepOfUser is what to do with a workload if it uses a source, else nil. What a re-admission would not roll is
// restarted, unless the webhook says that its pods have the present content: it may hold the old one. partly tells that
// the source itself says that not all of it counts.
func (o *order) stepOfUser(ctx context.Context, t *target, source checksum.Source, partly bool) (*step, error) {
	object, _, err := t.decode()
	if err != nil {
		return nil, err
	}
	references, err := object.References()
	if err != nil {
		return nil, fmt.Errorf("%s: it is not known whether it uses %s: %w", t.place(), source, err)
	}
	counts := !partly && slices.ContainsFunc(checksum.Selections(references, o.policyOf(object, source)), func(s checksum.Selection) bool {
		return s.Source == source && !s.HoldOnly
	})
	uses := counts || slices.ContainsFunc(references, func(r checksum.Reference) bool {
		return r.Source == source && (r.Use == checksum.Startup || r.Use == checksum.Live)
	})
	switch {
	case !uses || object.RolledByOwner(o.settings.Kinds) || object.DeletionTimestamp != nil:
		return nil, nil
	case t.kind.CreateOnly:
		return byHand(t, object), nil
	}
	s, err := o.stepOf(ctx, t)
	switch {
	case err == nil && (s.manager != "" || counts && s.answer.Code == reason.OutcomeInStep):
		return s, nil
	case s != nil && s.answer.Code == reason.OutcomeMissing: // a new pod could not start
		return nil, err
	case s == nil && !o.mayPatch(ctx, t):
		return nil, err
	}
	s = &step{target: t}
	s.restart("configstamp would not roll it for " + source.String())
	return s, nil
}

// byHand is the step of an object that is stamped only when it is created, if it has pods of its own: it has to be made
// again.
func byHand(t *target, object *workload.Object) *step {
	phase, _, _ := unstructured.NestedString(t.object().Object, "status", "phase")
	active, _, _ := unstructured.NestedInt64(t.object().Object, "status", "active")
	replicas, set, _ := unstructured.NestedInt64(t.object().Object, "spec", "replicas")
	over := phase == "Succeeded" || phase == "Failed" || t.kind.Name == "Job" && active == 0 || set && replicas == 0
	if object.Controller() != nil || over {
		return nil
	}
	return &step{target: t, why: "it cannot be rolled: delete it, and create it again"}
}

// listSteps prints what will be done, and returns the steps in which something is.
func (o *order) listSteps(source checksum.Source, steps []*step, failed []error) (todo []*step) {
	to := o.words()
	if len(steps)+len(failed) == 0 {
		paragraph(to, "", "No workload in namespace "+o.namespace+" uses "+source.String()+".")
		return nil
	}
	paragraph(to, "", source.String()+" in namespace "+o.namespace+" is used by:")
	rows := &table{columns: narrow, indent: "  "}
	for _, s := range steps {
		will := s.why
		if s.manager != "" {
			todo = append(todo, s)
			if will = map[string]string{"rolled": "rolls", "restarted": "restarts"}[s.did]; s.why != "" {
				will += ": " + s.why
			}
			if len(s.overrules) > 0 {
				will += ", in spite of " + joined(s.overrules)
			}
		}
		rows.add(s.String(), will)
	}
	for _, err := range failed {
		rows.add("-", err.Error())
	}
	rows.print(to)
	return todo
}

// confirm asks a question at the terminal. Anything but yes is an error.
func (p *plugin) confirm(question string) error {
	if !p.isTerminal(p.In) {
		return errors.New("nothing was done, as there is no terminal at which to ask: say it again with --yes")
	}
	fmt.Fprint(p.ErrOut, question+" [y/N] ")
	answer, _ := bufio.NewReader(p.In).ReadString('\n') // no answer is none
	if word := strings.ToLower(strings.TrimSpace(answer)); word != "y" && word != "yes" {
		return errors.New("nothing was done")
	}
	return nil
}
