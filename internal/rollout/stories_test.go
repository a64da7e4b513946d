package rollout_test

import (
	"testing"
	"time"
)

// The stories of a change, each with the lines of what happens in testdata.

func shop(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, 1)
	for _, name := range []string{"web-app", "api", "worker", "mailer"} {
		w.add(deployment("shop", name, "web"))
	}
	w.lead()
	w.pass(time.Minute)
	return w
}

func TestStory_ABadEditStopsAtOne(t *testing.T) {
	w := shop(t)
	end := w.tell("a-bad-edit-stops-at-one", "A bad edit of a ConfigMap that four Deployments use reaches one of them.", false)
	w.edit(place("shop", "web"), w.content(crashes))
	w.pass(time.Hour)
	end()
}
