package rollout_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/rollout"
)

// A replicated ConfigMap is one change. These are the stories of a bundle of
// certificates in 200 namespaces of three workloads.

const tenants = 200

func tenant(n int) string { return fmt.Sprintf("tenant-%03d", n) }

// bundled is the cluster.
func bundled(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, 1)
	for n := range tenants {
		for _, name := range []string{"api", "web", "worker"} {
			w.add(deployment(tenant(n), name, "trust"))
		}
	}
	return w
}

func (w *world) begins() {
	w.bundle(w.content(fine))
	for _, a := range w.apps {
		a.stamp(w.holds)
		a.oldStamps = nil
	}
	w.lead()
	w.pass(2 * time.Minute)
}

// bundle writes a content into every copy of the bundle: at once before anybody leads,
// else twenty each second.
func (w *world) bundle(c *content) {
	n := 0
	for _, at := range w.places() {
		if at.Source != source("trust") {
			continue
		}
		its := c
		if c.copies++; w.copyOf != nil {
			its = w.copyOf(c, at)
		}
		if w.driver == nil {
			w.contents[at] = its
			continue
		}
		w.at(time.Duration(n)*time.Second/20, func() { w.edit(at, its) })
		n++
	}
}

// reached is how many workloads a bad content has reached, and in how many namespaces.
func (w *world) reached(c *content) (workloads, namespaces int) {
	seen := map[string]bool{}
	for _, v := range w.victims[c.number] {
		seen[v.a.ref.Namespace] = true
	}
	return len(w.victims[c.number]), len(seen)
}

func TestStory_ABundleIn200NamespacesGood(t *testing.T) {
	w := bundled(t)
	w.begins()
	w.tell("A good bundle rolls 600 workloads in 200 namespaces, as one change.\nTen may be under way at once, each takes 24 s: that is 24 min, and some steps before.", true)
	w.bundle(w.content(fine))
	w.pass(30 * time.Minute)
	w.checkRolled(3 * tenants)
	w.checkHalts(0)
}

func TestStory_ABundleIn200NamespacesBad(t *testing.T) {
	w := bundled(t)
	w.begins()
	w.tell("A bad bundle reaches two workloads in two namespaces. An hour later one more namespace tries.\nWhen the bundle is mended all roll.", true)
	bad := w.content(crashes)
	w.bundle(bad)
	w.pass(time.Hour)
	if workloads, namespaces := w.reached(bad); workloads > 2 || namespaces > 2 {
		w.errorf("a bad bundle has reached %d workloads in %d namespaces, want two in two", workloads, namespaces)
	}
	w.pass(4 * time.Hour)
	if workloads, _ := w.reached(bad); workloads > 2+4 {
		w.errorf("after five hours a bad bundle has reached %d workloads, want 6 at most", workloads)
	}
	w.bundle(w.content(fine))
	w.pass(time.Hour)
	w.checkRolled(3 * tenants)
	w.keep("a-bundle-in-200-namespaces-bad")
}

// ConfigMaps have text and binary keys. A store of certificates that has a password (PKCS12) has
// salt: each copy of one text has another store beside it.
func TestABundleWithStores(t *testing.T) {
	for name, its := range map[string]func(c *content, at rollout.SourceRef) (text, store string){
		"Salted": func(c *content, at rollout.SourceRef) (text, store string) {
			return strconv.Itoa(c.number), at.Namespace
		},
		"StoresOnly": func(c *content, _ rollout.SourceRef) (text, store string) {
			return "always the same", strconv.Itoa(c.number)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := bundled(t)
			w.copyOf = func(c *content, at rollout.SourceRef) *content {
				text, store := its(c, at)
				own := *c
				own.Content = checksum.ContentOfConfigMap(&corev1.ConfigMap{
					Data: map[string]string{"text": text}, BinaryData: map[string][]byte{"store": []byte(store)},
				})
				return &own
			}
			w.begins()
			bad := w.content(crashes)
			w.bundle(bad)
			w.pass(5 * time.Second)
			w.lead() // who does not know what they held before, while half of them are written
			w.pass(40 * time.Minute)
			if workloads, namespaces := w.reached(bad); workloads > 2 || namespaces > 2 {
				w.errorf("a bad bundle has reached %d workloads in %d namespaces, want two in two", workloads, namespaces)
			}
			w.bundle(w.content(fine))
			w.pass(time.Hour)
			w.checkRolled(3 * tenants)
		})
	}
}

func TestStory_ABundleBesideATenantThatAlwaysFails(t *testing.T) {
	w := bundled(t)
	order := 0
	for _, name := range []string{"api", "web", "worker"} {
		a := w.add(deployment("aa-tenant", name, "trust"))
		a.allergic, a.order = true, &order
	}
	w.begins()
	w.tell("A good bundle, and a tenant whose workloads fail whatever they roll for, and who leads.\nIts own namespace halts; all others end rolled.", true)
	w.bundle(w.content(fine))
	w.pass(40 * time.Minute)
	w.checkRolled(3*tenants + 1)
	w.checkHalts(1)
}

func TestStory_AaAndZz(t *testing.T) {
	w := bundled(t)
	aa, zz := w.add(deployment("aa-prod", "web", "web")), w.add(deployment("zz-prod", "web", "web"))
	w.begins()
	w.tell("While a bundle rolls in 200 namespaces, two changes are made at one instant, in namespaces aa-prod and zz-prod.\nBoth roll soon: nobody is served by the alphabet.", true)
	w.bundle(w.content(fine))
	w.pass(30 * time.Second)
	edited := w.now
	w.edit(place("aa-prod", "web"), w.content(fine))
	w.edit(place("zz-prod", "web"), w.content(fine))
	w.pass(40 * time.Minute)
	for _, a := range []*app{aa, zz} {
		w.soon(a, edited, time.Minute)
	}
	w.checkRolled(3*tenants + 2)
	w.checkHalts(0)
}

// soon checks that a workload has rolled by us soon after a time.
func (w *world) soon(a *app, since time.Time, within time.Duration) {
	w.t.Helper()
	switch {
	case !a.byUs || a.began.Before(since):
		w.errorf("%s has rolled 0 times in %s, want once within %s", a.name(), w.now.Sub(since), within)
	case a.began.Sub(since) > within:
		w.errorf("%s has rolled after %s, want within %s", a.name(), a.began.Sub(since), within)
	}
}
