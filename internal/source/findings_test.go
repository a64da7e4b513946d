package source

import (
	"slices"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/cache/follow/fakeapi"
)

// findingsOf waits until what people should know of sources is as wanted.
func findingsOf(t *testing.T, store *Store) (become func(want ...string)) {
	return func(want ...string) {
		t.Helper()
		fakeapi.Eventually(t, "the findings are as wanted", func() bool {
			var all []string
			store.Findings(func(namespace string, source checksum.Source, found []checksum.Finding) {
				for _, finding := range found {
					all = append(all, namespace+" "+source.String()+" "+finding.Reason.String())
				}
			})
			slices.Sort(all)
			return slices.Equal(all, want)
		})
	}
}

// Nodes never read an immutable source twice: one that is made anew under its name, with other
// content, is told of, and one with the same is not, nor one that was not immutable.
func TestAnImmutableSourceIsMadeAnew(t *testing.T) {
	server := fakeapi.New(t)
	store, _ := newStore(t, server)
	become := findingsOf(t, store)
	frozen, immutable := configMap("shop", "web", map[string]string{"a": "1"}), true
	password, free := secret("shop", "db", "1"), configMap("shop", "free", map[string]string{"a": "1"})
	frozen.Immutable, password.Immutable = &immutable, &immutable
	server.Put("configmaps", frozen)
	server.Put("configmaps", free)
	server.Put("secrets", password)
	run(t, store)
	become()
	anew := func(value string) {
		server.Delete("configmaps", "shop", "web")
		frozen.Data = map[string]string{"a": value}
		server.Put("configmaps", frozen)
	}
	anew("2")
	server.Delete("configmaps", "shop", "free")
	free.Data = map[string]string{"a": "2"}
	server.Put("configmaps", free)
	become("shop configmap/web made-anew")
	frozen.Annotations = map[string]string{"configstamp.dev/ignore": "maybe"} // another write changes nothing of that
	server.Put("configmaps", frozen)
	become("shop configmap/web made-anew", "shop configmap/web unreadable-setting")
	if at := (checksum.Source{Kind: checksum.ConfigMap, Name: "web"}); !store.MadeAnew("shop", at) || store.MadeAnew("elsewhere", at) {
		t.Error("it does not say so of this source alone")
	}
	frozen.Annotations = nil
	anew("1")
	become()

	// After a gap of the watch, too.
	server.Compact()
	server.CutWatches()
	anew("3")
	server.Delete("secrets", "shop", "db")
	become("shop configmap/web made-anew")
	password.Data = map[string][]byte{"password": []byte("2")}
	password.Immutable = nil
	server.Put("secrets", password)
	become("shop configmap/web made-anew", "shop secret/db made-anew")
}

// A Secret of Helm's type is not watched, whatever its name is: it is known to be there once
// somebody has asked, and for a while.
func TestAReleaseOfHelmUnderAnOrdinaryName(t *testing.T) {
	server := fakeapi.New(t)
	clock := clocktesting.NewFakePassiveClock(time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC))
	store, err := NewStore(server.Config(), Options{Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	at := checksum.Source{Kind: checksum.Secret, Name: "release"}
	helm := secret("shop", at.Name, "big")
	helm.Type = checksum.HelmReleaseType
	server.Put("secrets", helm)
	run(t, store)
	want := func(about string, there bool) {
		t.Helper()
		if content := store.Content("shop", at); (content != nil && content.Unwatched) != there || !there && content != nil {
			t.Errorf("%s: %v", about, content)
		}
	}
	confirm := func() {
		t.Helper()
		if err := store.Confirm(t.Context(), "shop", at); err != nil {
			t.Fatal(err)
		}
	}
	want("nobody has asked", false)
	confirm()
	want("somebody has asked", true)
	clock.SetTime(clock.Now().Add(believedFor))
	want("that was long ago", false)
	confirm()
	server.Delete("secrets", "shop", at.Name)
	confirm()
	want("it is gone", false)
}

// What people should know of a source is kept while it stands, and nothing of those of which
// there is nothing to know.
func TestFindingsStandAsLongAsTheirSources(t *testing.T) {
	server := fakeapi.New(t)
	store, _ := newStore(t, server)
	become := findingsOf(t, store)
	cm := configMap("shop", "web", map[string]string{"a": "1"})
	cm.Labels = map[string]string{checksum.SnapshotLabel: "true"}
	cm.Annotations = map[string]string{"configstamp.dev/ignore": "maybe", "kubectl.kubernetes.io/last-applied-configuration": "{}"}
	server.Put("configmaps", cm)
	server.Put("configmaps", configMap("shop", "plain", map[string]string{"a": "1"}))
	run(t, store)
	become("shop configmap/web not-a-snapshot", "shop configmap/web unreadable-setting")
	bad := secret("shop", "token", "hunter2")
	bad.Annotations = map[string]string{"configstamp.dev/ignore": "maybe", "configstamp.dev/resume": "2999-01-01T00:00:00Z"}
	server.Put("secrets", bad)
	cm.Labels, cm.Annotations = nil, map[string]string{"configstamp.dev/ignore": "true"}
	server.Put("configmaps", cm)
	become("shop secret/token resume-ahead", "shop secret/token unreadable-setting")
	server.Delete("secrets", "shop", "token")
	become()

	// After a gap of the watch, too.
	server.Put("secrets", bad)
	become("shop secret/token resume-ahead", "shop secret/token unreadable-setting")
	server.Compact()
	server.CutWatches()
	server.Delete("secrets", "shop", "token")
	become()
}
