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
)

// rollUsers rolls everything that uses a source. A workload that fails does not stop the others.
func (o *task) rollUsers(ctx context.Context, args []string, yes bool) error {
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
	unseen, err := o.eachWorkload(o.settings.Kinds, o.namespace, func(t *target) error {
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
		if err := o.take(ctx, s); err != nil {
			errs = append(errs, err)
		}
	}
	if o.changed {
		paragraph(o.words(), "", "Next: kubectl configstamp wait "+t.words())
	}
	return errors.Join(errs...)
}

// stepOfUser returns what to do with a workload if it uses a source, else nil. What a re-admission would not roll is
// restarted, unless the webhook answers that its pods have the present content: it may hold the old one. partly reports
// that by the source's own settings not all of it counts.
func (o *task) stepOfUser(ctx context.Context, t *target, source checksum.Source, partly bool) (*step, error) {
	user, err := o.subjectOf(t, source)
	if err != nil {
		return nil, fmt.Errorf("it is not known whether a workload uses %s: %w", source, err)
	}
	counts := !partly && slices.ContainsFunc(checksum.Selections(user.references, user.policy), func(s checksum.Selection) bool {
		return s.Source == source && !s.HoldOnly
	})
	uses := counts || slices.ContainsFunc(user.references, func(r checksum.Reference) bool {
		return r.Source == source && (r.Use == checksum.Startup || r.Use == checksum.Live)
	})
	switch {
	case !uses || user.read.RolledByOwner(o.settings.Kinds) || user.read.DeletionTimestamp != nil:
		return nil, nil
	case t.kind.CreateOnly:
		return byHand(user), nil
	}
	s, err := o.stepOf(ctx, t)
	switch {
	case err == nil && (s.body != nil || counts && s.answer.Code == reason.OutcomeInStep):
		return s, nil
	case s.answer.Code == reason.OutcomeMissing, s.rehearsed == nil && !o.mayPatch(ctx, t): // a new pod could not start
		return nil, err
	}
	return s, o.restart(s, "configstamp would not roll it for "+source.String())
}

// byHand returns the step of an object that is stamped only when it is created, if it has pods of its own: it has to be
// created again.
func byHand(s *subject) *step {
	object := s.object().Object
	phase, _, _ := unstructured.NestedString(object, "status", "phase")
	active, _, _ := unstructured.NestedInt64(object, "status", "active")
	replicas, set, _ := unstructured.NestedInt64(object, "spec", "replicas")
	over := phase == "Succeeded" || phase == "Failed" || s.kind.Name == "Job" && active == 0 || set && replicas == 0
	if s.read.Controller() != nil || over {
		return nil
	}
	return &step{target: s.target, why: "it cannot be rolled: delete it, and create it again"}
}

// listSteps prints what will be done, and returns the steps in which something is.
func (o *task) listSteps(source checksum.Source, steps []*step, failed []error) (todo []*step) {
	to := o.words()
	if len(steps)+len(failed) == 0 {
		paragraph(to, "", "No workload in namespace "+o.namespace+" uses "+source.String()+".")
		return nil
	}
	paragraph(to, "", source.String()+" in namespace "+o.namespace+" is used by:")
	rows := &table{indent: "  "}
	rows.add("WORKLOAD", "WHAT HAPPENS")
	for _, s := range steps {
		will := s.why
		if s.body != nil {
			todo = append(todo, s)
			will = strings.TrimSuffix(map[string]string{"rolled": "rolls", "restarted": "restarts"}[s.did]+": "+s.why, ": ")
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
		return errors.New("nothing was done, as there is no terminal at which to ask: run it again with --yes")
	}
	fmt.Fprint(p.ErrOut, question+" [y/N] ")
	answer, _ := bufio.NewReader(p.In).ReadString('\n') // no answer is none
	if word := strings.ToLower(strings.TrimSpace(answer)); word != "y" && word != "yes" {
		return errors.New("nothing was done")
	}
	return nil
}
