package controller

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

// read reads what the planner needs beside the workload. That pods could not be listed is for the
// planner to know.
func (l *look) read(ctx context.Context, f *rollout.Facts, need rollout.Needs) (err error) {
	if need.Pods {
		switch f.Pods, err = l.pods(ctx, need.Selector); {
		case f.Pods.Access == rollout.Forbidden:
			l.sayUnseen(err)
		case err != nil:
			return fmt.Errorf("following a rollout: %w", err)
		}
	}
	if need.Muted {
		body, err := l.api.get(ctx, l.ref)
		if err != nil {
			return fmt.Errorf("finding out why its status does not report its rollout: %w", err)
		}
		muted := l.ref.Kind.Muted(body)
		f.Muted = &muted
	}
	if need.LastRoll {
		if f.LastRoll, err = l.lastRoll(ctx); err != nil {
			return fmt.Errorf("finding out what its last rollout has changed: %w", err)
		}
	}
	for _, name := range need.Nodes {
		if _, known := f.Nodes[name]; known {
			continue
		}
		ready, err := l.api.nodeReady(ctx, name)
		if err != nil {
			return err
		}
		f.Nodes[name] = ready
	}
	return nil
}

// lastRoll is what the workload's revisions tell of its last rollout.
func (l *look) lastRoll(ctx context.Context) (*rollout.LastRoll, error) {
	if l.options.Revisions == nil || l.ref.Kind.RevisionResource() == "" {
		return &rollout.LastRoll{}, nil
	}
	body, err := l.api.get(ctx, l.ref)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	last, err := l.options.Revisions.Last(ctx, l.ref.Kind, l.ref.Namespace, body)
	return (*rollout.LastRoll)(&last), err
}

// pods are those of the workload, of every revision. What cannot be read as a selector selects
// nothing: then the status alone tells.
func (l *look) pods(ctx context.Context, selector *string) (*rollout.Pods, error) {
	if selector == nil {
		body, err := l.api.get(ctx, l.ref)
		if err != nil {
			return &rollout.Pods{Access: rollout.Unread}, err
		}
		text, _ := l.ref.Kind.Selector(body)
		selector = &text
	}
	if *selector == "" {
		return &rollout.Pods{Access: rollout.Unselected}, nil
	}
	all, err := l.api.pods(ctx, l.ref.Namespace, *selector)
	if !l.s.Borrowed() { // else they are those of another object
		all = slices.DeleteFunc(all, func(pod workload.Pod) bool { return !l.options.Kinds.MadeBy(l.ref, l.s.UID, &pod) })
	}
	pods := &rollout.Pods{All: all, Selector: *selector}
	switch {
	case apierrors.IsForbidden(err):
		pods.Access = rollout.Forbidden
	case err != nil:
		pods.Access = rollout.Unread
	}
	return pods, err
}
