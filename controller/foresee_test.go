package controller

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/impact"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

// editOf is an edit that somebody is about to make of a ConfigMap in shop.
func (c *cluster) editOf(name, value string) impact.Edit {
	at := rollout.SourceRef{Namespace: "shop", Source: configMap(name)}
	return impact.Edit{At: at, Was: c.contents[at.Source], Is: checksum.ContentOfConfigMap(&corev1.ConfigMap{Data: map[string]string{"k": value}})}
}

func TestForesee_NothingBeforeAllIsKnown(t *testing.T) {
	c := newCluster(t)
	c.write("c", map[string]string{"k": "old"})
	ref := c.deploy("web", "c")
	c.admit(ref, "configstamp")
	h := newHouse(t, c)
	if _, ready := h.Foresee(c.editOf("c", "new")); ready {
		t.Error("it foresees though its caches are not full")
	}
	h.full.Store(true)
	if answer, ready := h.Foresee(c.editOf("c", "new")); !ready || len(answer.Rolls) != 1 || answer.Rolls[0].Workload != ref {
		t.Errorf("%v, %t", answer, ready)
	} else if len(answer.Unguarded) != 1 || answer.Unguarded[0] != ref { // its container has no readiness probe
		t.Errorf("unguarded: %v", answer.Unguarded)
	}
	if answer, ready := h.Foresee(c.editOf("nobodys", "new")); !ready || len(answer.Rolls)+len(answer.Stays) > 0 {
		t.Errorf("%v, %t", answer, ready)
	}
	c.ring = nil
	if _, ready := h.Foresee(c.editOf("c", "new")); ready {
		t.Error("it foresees without a key")
	}
}

// A workload may be seen before the policy of its Namespace, and a process that does not
// lead is asked as well.
func TestForesee_ThePolicyOfANamespaceThatCameLate(t *testing.T) {
	c := newCluster(t)
	c.write("c", map[string]string{"k": "old"})
	ref := c.deploy("web")
	h := realTime(t, c)
	c.mu.Lock()
	c.settings = map[string]string{"configstamp.dev/also": "configmap/c"}
	c.refusal = errRefused // else what is answered would tell of it
	c.mu.Unlock()
	started(t, h)
	eventually(t, "it is foreseen", func() bool {
		answer, ready := h.Foresee(c.editOf("c", "new"))
		return ready && len(answer.Stays) == 1 && answer.Stays[0].Workload == ref && answer.Stays[0].Why == reason.Recorded
	})
}

// Where a status does not tell when the newest revision became current, the leader knows of
// its own rolls.
func TestForesee_TheLeaderKnowsItsLastRoll(t *testing.T) {
	c := newCluster(t)
	c.write("c", map[string]string{"k": "old"})
	ref := c.deploy("web", "c")
	h := adopted(t, c)
	c.annotate(ref, "min-interval", "1h")
	h.see(t, ref)
	c.write("c", map[string]string{"k": "new"})
	h.Changed("shop", configMap("c"))
	h.rest()
	h.mustSync(t, ref)
	h.see(t, ref)
	h.full.Store(true)
	edit := c.editOf("c", "newer")
	for leads, want := range map[bool]reason.Reason{true: reason.TooSoon, false: reason.NoReason} {
		h.leads.Store(leads)
		answer, _ := h.Foresee(edit)
		if len(answer.Rolls) != 1 || answer.Rolls[0].Held.Reason != want {
			t.Errorf("leads %t: %v", leads, answer.Rolls)
		}
	}
}

// Who reaches the port of impact warnings may say what an edit is. An answer that told a true
// guess at what a source holds, or held, from others would give it away.
func TestForesee_NobodyTestsGuesses(t *testing.T) {
	for _, kind := range []checksum.Kind{checksum.ConfigMap, checksum.Secret} {
		c := newCluster(t)
		source, holds := checksum.Source{Kind: kind, Name: "db"}, func(value string) *checksum.Content {
			return checksum.ContentOfSecret(&corev1.Secret{Data: map[string][]byte{"k": []byte(value)}})
		}
		c.contents[source] = holds("swordfish")
		h := newHouse(t, c)
		ref := workload.Ref{Kind: c.kind, Namespace: "shop", Name: "web"}
		stamped := stampedWorkload(c, source)
		stamped.Records.Declined = checksum.Declined{source: {c.ring.Digest("shop", checksum.Selections(stamped.References, c.policy)[0], holds("declined"))}}.String()
		h.index.Told(ref, stamped)
		h.full.Store(true)
		rolls := map[string]int{}
		for _, guess := range []string{"swordfish", "password", "declined"} {
			for _, was := range []string{"swordfish", "else"} {
				edit := impact.Edit{At: rollout.SourceRef{Namespace: "shop", Source: source}, Was: holds(was), Is: holds(guess)}
				if was != guess {
					answer, _ := h.Foresee(edit)
					rolls[guess] += len(answer.Rolls)
				}
			}
		}
		if rolls["swordfish"] != 1 || rolls["password"] != 2 || rolls["declined"] != 2 { // an edit for each that it says it was before
			t.Errorf("%s: %v", kind, rolls)
		}
	}
}

// stampedWorkload reads a source by envFrom, and carries a true stamp of it.
func stampedWorkload(c *cluster, source checksum.Source) *Workload {
	references := []checksum.Reference{{Source: source, Use: checksum.Startup, All: true, Env: true}}
	selection := checksum.Selections(references, c.policy)[0]
	return &Workload{
		UID: types.UID("uid"), ResourceVersion: "1", References: references,
		Records: checksum.Records{Stamps: map[string]string{checksum.StampKey(source): c.ring.Digest("shop", selection, c.contents[source])}},
		Status:  workload.Status{Phase: workload.RolledOut, Wanted: 3, Available: 3, Updated: 3, Gentle: true},
	}
}
