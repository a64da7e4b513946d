package main

import (
	"context"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/reason"
)

// users reads the workloads that are waited for: all that use the source, but for those whose own labels say that they
// are not served. unseen says which kinds could not be listed, and why.
func (w *waiting) users() (users []*subject, unseen []string, err error) {
	if w.source == (checksum.Source{}) {
		s, err := w.subject(w.args)
		return []*subject{s}, nil, err
	}
	unseen, err = w.eachWorkload(w.settings.Kinds.Readmitted(), w.namespace, func(t *target) error {
		s, err := w.subjectOf(t, w.source)
		if err != nil || !slices.Contains(s.sources, w.source) {
			return err
		}
		if standing, _ := w.settings.Serves(s.read, w.inNamespace()); standing != notServed {
			s.maybe = standing == maybeServed
			users = append(users, s)
		}
		return nil
	})
	return users, unseen, err
}

// asksAtOnce is how many questions are under way at most.
const asksAtOnce = 50

// askAll asks the webhook about the workloads that are waited for. If the report on a source is complete, the only
// question is whether one of them would roll for that source.
func (w *waiting) askAll(ctx context.Context, complete bool) (finding, error) {
	users, unseen, err := w.users()
	if err != nil {
		return finding{}, err
	}
	complete = complete && w.source != checksum.Source{}
	if len(unseen) > 0 && !complete {
		return finding{unknown, "what else uses " + w.what + " is not known: " + unseen[0], w.judge.late, false}, nil // a report may come
	}
	findings, served := make([]finding, len(users)), make([]bool, len(users))
	var unasked atomic.Bool
	var group errgroup.Group
	group.SetLimit(asksAtOnce)
	for i, s := range users {
		group.Go(func() error {
			answer, news := w.ask(ctx, s)
			unasked.CompareAndSwap(false, answer.Lasting)
			served[i] = answer.Code != reason.OutcomeOptedOut && answer.Code != reason.OutcomeDeclined && (!s.maybe || answer.Code != reason.NoOutcome)
			concerned := answer.Code == reason.OutcomeDeferred || answer.Code == reason.NoOutcome || answer.Code == reason.OutcomeWouldRoll && slices.Contains(news, w.what)
			if served[i] && (concerned || !complete) {
				findings[i] = w.judge.ofAnswer(s, &answer)
			}
			return nil
		})
	}
	_ = group.Wait() // no question ends the others
	w.unasked = unasked.Load()
	f := gravest(findings...)
	switch {
	case complete || f.verdict != finished:
		return f, nil
	case len(users) == 0:
		f.why = "no workload uses it: there is nothing to wait for"
	case !slices.Contains(served, true):
		return finding{unknown, leavesAlone, w.judge.settled, false}, nil
	default:
		f.why = "in step and rolled out, as the webhook and the workloads' own controllers say"
	}
	return f, nil
}

// ask asks the webhook about a workload. news are the sources of which the workload would get new content.
func (w *waiting) ask(ctx context.Context, s *subject) (answer outcome, news []string) {
	after, answer, err := s.ask(ctx)
	switch {
	case err != nil:
		return answer, nil
	case answer.Code == reason.OutcomeInStep && after.object().GetGeneration() != s.object().GetGeneration():
		answer.Code, answer.Sentence = reason.OutcomeDeferred, "it was changed a moment ago"
	}
	return answer, newsOf(s.target, after)
}
