package soak

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/configstamp/configstamp/e2e/harness"
)

// What a process that is killed takes with it: the admissions in its hands, and
// those that the API server sends to its address before kubelet and kube-proxy
// know. The API server asks nobody else.

// unseen is how long a death may go unseen by kubelet, endpoints and kube-proxy.
const unseen = 12 * time.Second

// kill notes when a webhook dies by do.
func (c *crowd) kill(do func()) {
	c.mu.Lock()
	c.kills = append(c.kills, time.Now())
	c.mu.Unlock()
	do()
}

// unanswered reports whether a webhook died while an admission was under way that
// began then and ends now, or so shortly before that nobody knew.
func (c *crowd) unanswered(began time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.kills, func(killed time.Time) bool {
		return began.Before(killed.Add(unseen)) && time.Now().After(killed)
	})
}

// cut reports whether the API server says that nobody was there, any more or at all.
func cut(err error) bool {
	text := err.Error()
	return strings.Contains(text, "failed calling webhook") && slices.ContainsFunc(
		[]string{": EOF", "unexpected EOF", "connection reset by peer", "broken pipe", "use of closed network connection",
			"server closed idle connection", "transport connection broken", "connection refused"},
		func(way string) bool { return strings.Contains(text, way) })
}

// waitHealed waits until everything that was stored unstamped is on record, and
// returns how much that was.
func (c *crowd) waitHealed(t *testing.T) int {
	t.Helper()
	for _, name := range c.unstamped {
		c.space.Eventually("waiting for the record of "+name, func() error {
			object := c.space.Get("deployment/" + name)
			for _, source := range []string{"configmap/settings", "secret/password"} {
				if want := c.stamps[harness.StampKey(source)]; harness.Baseline(object)[source] != want && harness.Stamps(object)[harness.StampKey(source)] != want {
					return errors.New("there is none of " + source)
				}
			}
			return nil
		})
	}
	return len(c.unstamped)
}
