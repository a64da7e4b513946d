package controller

import (
	"context"
	"maps"
	"slices"
	"time"

	"k8s.io/klog/v2"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

// missesEvery is how often the labels and annotations that no admission of ours sees are
// gone through. A near miss that stands twice is told of: who sees it at once need not read
// of it, and who makes a Namespace before what is in it is not told that nothing is there.
const missesEvery = 5 * time.Second

// misses are what has to be told, and what was told: one text about a Namespace (its name),
// a source (rollout.SourceRef) or a workload (workload.Ref), for each event. Losing it
// (a new leader) costs events that are repeated.
type misses struct{ stood, told remarks }

type remarks map[remark]string

type remark struct {
	about any
	why   checksum.Reason // the first of those with its event
}

// add notes findings about one thing: one text for each event.
func (r remarks) add(about any, found []checksum.Finding) {
	for why, text := range checksum.ByEvent(found) {
		r[remark{about, why}] = text
	}
}

// tellMisses tells people of near misses, and of settings that cannot be read, where no
// admission of ours does, until ctx ends.
func (c *Controller) tellMisses(ctx context.Context) {
	ticker := c.options.Clock.NewTicker(missesEvery)
	defer ticker.Stop()
	m := misses{told: remarks{}}
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
			c.tellNewMisses(ctx, &m)
		}
	}
}

// tellNewMisses tells of what stood here the last time too, once until it changes.
func (c *Controller) tellNewMisses(ctx context.Context, m *misses) {
	defer c.caught(klog.FromContext(ctx), inMisses, "Looking for near misses panicked", func() {})
	found := c.misses()
	for at, text := range found {
		if m.stood[at] == text && m.told[at] != text {
			m.told[at] = text
			c.tellMiss(ctx, at, text)
		}
	}
	maps.DeleteFunc(m.told, func(at remark, _ string) bool { return found[at] == "" })
	m.stood = found
}

func (c *Controller) tellMiss(ctx context.Context, at remark, text string) {
	switch about := at.about.(type) {
	case string:
		c.tell(namespaceRef(about), nil, at.why, text)
	case rollout.SourceRef:
		c.onSource(ctx, about, at.why, text, "")
	case workload.Ref:
		if s := c.index.Get(about); s != nil {
			c.say(about, s, at.why, text)
		}
	}
}

// misses finds everything that is to be told now.
func (c *Controller) misses() remarks {
	found, only := remarks{}, map[string]map[string]string{}
	c.namespaces.Each(func(name string, says checksum.Namespace) {
		if !says.Ending && !checksum.LeftToAnother(says, c.options.Installation) {
			found.add(name, says.Findings)
			if checksum.NamesOnly(says.Settings) {
				only[name] = says.Settings
			}
		}
	})
	c.sources.Findings(func(namespace string, source checksum.Source, findings []checksum.Finding) {
		if !checksum.LeftToAnother(c.namespaces.Get(namespace), c.options.Installation) {
			found.add(rollout.SourceRef{Namespace: namespace, Source: source}, findings)
		}
	})
	referenced := map[string]*checksum.Referenced{}
	c.index.Each(func(user workload.Ref, s *Workload) {
		if only[user.Namespace] != nil {
			referenced[user.Namespace] = referenced[user.Namespace].With(s.References, s.Foreign)
		}
		if len(s.Misses)+len(s.Settings) > 0 && c.unseen(user, s) {
			found.add(user, s.Misses)
			found.add(user, checksum.Unreadable(checksum.OfWorkload, s.Settings))
		}
	})
	for namespace, by := range referenced { // where there is no workload, there is nothing to say yet
		all := slices.Concat(c.namespaces.Get(namespace).Findings, by.Lacks(only[namespace]))
		found.add(namespace, all)
	}
	return found
}

// unseen reports whether no admission of ours tells what is wrong with a workload's labels
// and annotations, and it is ours to tell.
func (c *Controller) unseen(user workload.Ref, s *Workload) bool {
	namespace := c.namespaces.Get(user.Namespace)
	candidate := c.candidate(user, s, namespace)
	return !candidate.Owned && !candidate.Ending && !checksum.Selected(candidate, namespace) && !checksum.LeftToAnother(namespace, c.options.Installation)
}
