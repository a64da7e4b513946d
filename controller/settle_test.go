package controller

import (
	"fmt"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

func TestSettling(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(1_000_000, 0))
	s := newSettling(2*time.Second, clock)
	s.begin()
	source := configMap("c")

	if wait := s.wait("n", source); wait != 2*time.Second {
		t.Errorf("what changed before the start waits %s, want 2s from the start", wait)
	}
	clock.Step(time.Minute)
	if wait := s.wait("n", source); wait != 0 {
		t.Errorf("a source at rest waits %s, want none", wait)
	}

	// Edits every second never let it rest, but it rolls after ten windows.
	began := clock.Now()
	for {
		s.changed("n", source)
		if s.wait("n", source) <= time.Second {
			break
		}
		clock.Step(time.Second)
		if clock.Since(began) > time.Minute {
			t.Fatal("a source that is edited all the time never settles")
		}
	}
	if total := clock.Since(began) + s.wait("n", source); total != 20*time.Second {
		t.Errorf("settled %s after the first edit, want 20s", total)
	}

	// After that a new edit begins anew.
	clock.Step(time.Second)
	s.changed("n", source)
	if wait := s.wait("n", source); wait != 2*time.Second {
		t.Errorf("the next edit waits %s, want 2s", wait)
	}
	if wait := s.wait("other", source); wait != 0 {
		t.Errorf("the same name in another namespace waits %s, want none", wait)
	}
}

func TestSettlingForgetsWhatHasSettled(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(1_000_000, 0))
	s := newSettling(time.Second, clock)
	for i := range 10_000 {
		s.changed("n", configMap(fmt.Sprint("c", i)))
		clock.Step(10 * time.Millisecond)
	}
	if len(s.edits) > 2000 {
		t.Errorf("%d edits are remembered, want about as many as settle at a time", len(s.edits))
	}
}
