package main

import (
	"context"
	"slices"
	"strings"
)

// pins is the scene of the bad edit once more, where pods keep the content that they were rolled
// out with: the bad edit reaches no pod that starts meanwhile, and rollout undo undoes.
func pins(ctx context.Context, s *stage) error {
	shop := []string{"cart", "checkout", "search", "stock"}
	if err := s.apply(ctx, "shop.yaml"); err != nil {
		return err
	}
	if err := s.all(ctx, "30s", shop...); err != nil {
		return err
	}
	if err := s.pinFromNowOn(ctx, shop); err != nil {
		return err
	}
	s.say("\n  They pin from their next rollout on.")
	if err := s.edit(ctx, "configmap/shop-settings", "TIMEOUT: 30s", "TIMEOUT: 40s"); err != nil {
		return err
	}
	if err := s.all(ctx, "40s", shop...); err != nil {
		return err
	}
	if err := s.tells(ctx, []string{"deployment/cart", "deployment/stock"}, "configstamp", "snapshots", "configmap/shop-settings"); err != nil {
		return err
	}
	s.say("\n  Somebody writes the timeout that is none again.")
	if err := s.edit(ctx, "configmap/shop-settings", "TIMEOUT: 40s", "TIMEOUT: half-a-minute"); err != nil {
		return err
	}
	if err := s.event(ctx, "configmap/shop-settings", "the change stops"); err != nil {
		return err
	}
	if err := s.restartedKeep(ctx, "stock"); err != nil {
		return err
	}
	s.say("\n  Undo the first one: its template goes back, and so does what its pods read.")
	printed, err := s.kubectl(ctx, "rollout", "undo", "deployment/cart")
	if err != nil {
		return err
	}
	if err := s.expect(strings.Contains(printed, "configmap/shop-settings is back at its content of"), "the person at the keyboard is told what went back"); err != nil {
		return err
	}
	if err := s.all(ctx, "40s", shop...); err != nil {
		return err
	}
	s.say("\n  The fix rolls to all.")
	if err := s.edit(ctx, "configmap/shop-settings", "TIMEOUT: half-a-minute", "TIMEOUT: 50s"); err != nil {
		return err
	}
	return s.all(ctx, "50s", shop...)
}

// pinFromNowOn switches pins on, and checks that nothing restarts by it.
func (s *stage) pinFromNowOn(ctx context.Context, deployments []string) error {
	before, err := s.podsOf(ctx, deployments...)
	if err != nil {
		return err
	}
	s.say("\n  Pins are off by default. They are switched on: helm upgrade --set pins.enabled=true, or what that renders.\n  $ kubectl apply -f %s", "install-with-pins.yaml")
	if _, err := s.quiet(ctx, "apply", "-f", s.pins, "--namespace="); err != nil {
		return err
	}
	if _, err := s.quiet(ctx, "rollout", "status", "deployment/configstamp", "--timeout=100s", "--namespace=configstamp"); err != nil {
		return err
	}
	// Those that end go on answering for a moment, and know of no pins.
	if err := s.eventually(ctx, "configstamp has no pods but the new ones", func() (bool, error) {
		names, err := s.quiet(ctx, "get", "pods", "-l", "app.kubernetes.io/name=configstamp", "-o", "name", "--namespace=configstamp")
		return len(strings.Fields(names)) == 2, err
	}); err != nil {
		return err
	}
	if _, err := s.kubectl(ctx, "annotate", "namespace", namespace, "configstamp.dev/pin=true"); err != nil {
		return err
	}
	after, err := s.podsOf(ctx, deployments...)
	if err != nil {
		return err
	}
	made := slices.ContainsFunc(strings.Fields(after), func(pod string) bool { return !slices.Contains(strings.Fields(before), pod) }) // pods of before may still end
	return s.expect(!made, "switching pins on restarts nothing")
}

// podsOf are the pods of Deployments.
func (s *stage) podsOf(ctx context.Context, deployments ...string) (string, error) {
	return s.quiet(ctx, "get", "pods", "-l", "app in ("+strings.Join(deployments, ",")+")", "-o", "name")
}

// all waits until Deployments are rolled out and answer with a setting.
func (s *stage) all(ctx context.Context, want string, deployments ...string) error {
	for _, name := range deployments {
		if err := s.answers(ctx, name, want); err != nil {
			return err
		}
	}
	return s.rolledOut(ctx, deployments...)
}

// restartedKeep deletes the pods of a Deployment that is held. With what the ConfigMap holds now
// the next ones would end at once.
func (s *stage) restartedKeep(ctx context.Context, name string) error {
	s.say("\n  One of four has failed, and the others are held. Meanwhile a node goes down, with all pods of %s.", name)
	before, err := s.podsOf(ctx, name)
	if err != nil {
		return err
	}
	if _, err := s.kubectl(ctx, "delete", "pods", "-l", "app="+name); err != nil {
		return err
	}
	if err := s.rolledOut(ctx, name); err != nil {
		return err
	}
	after, err := s.podsOf(ctx, name)
	if err != nil {
		return err
	}
	for pod := range strings.FieldsSeq(before) {
		if err := s.expect(!strings.Contains(after, pod), "%s is gone", pod); err != nil {
			return err
		}
	}
	if _, err := s.kubectl(ctx, "get", "pods", "-l", "app="+name); err != nil {
		return err
	}
	if err := s.answers(ctx, name, "40s"); err != nil {
		return err
	}
	s.say("  They are back, with the content that they were rolled out with:")
	_, err = s.kubectl(ctx, "get", "pods", "-l", "app="+name, "-o", `custom-columns=POD:.metadata.name,READS:.spec.containers[*].envFrom[*].configMapRef.name`)
	return err
}
