package main

import (
	"slices"

	"k8s.io/utils/clock"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/controller"
	"github.com/configstamp/configstamp/internal/pods"
)

// followPods has the leader follow pods, if that is asked for, and tell what they really have.
func (o *controllerOptions) followPods(p *process, rules rules, c *controller.Controller) error {
	if !o.pods {
		return nil
	}
	never := o.never()
	room := pods.New(pods.Options{
		Sources: p.store,
		Ring:    p.keys.Ring,
		Wanted: func(namespace string) bool {
			says := p.spaces.Get(namespace)
			return says.OptedIn && !slices.Contains(never, namespace) && !checksum.LeftToAnother(says, o.namespace)
		},
		Policy:     c.PolicyOf,
		Kinds:      rules.kinds.Readmitted(),
		Namespaces: o.namespaces,
		Settle:     o.settle,
		Clock:      clock.RealClock{},
	})
	follower, err := pods.NewFollower(p.config, room)
	if err != nil {
		return err
	}
	metrics := pods.Metrics{Room: room}
	if o.spaces > 0 {
		metrics.Names = c.Spaces
	}
	p.registry.MustRegister(metrics)
	p.store.OnChange(room.Edited)
	p.spaces.OnChange(room.NamespaceChanged)
	c.WhileLeading(follower.Run)
	return nil
}
