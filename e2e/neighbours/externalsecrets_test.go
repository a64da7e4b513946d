package neighbours

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configstamp/configstamp/e2e/harness"
)

// externalSecrets is the External Secrets Operator. It reads a provider every few seconds, and writes
// Secrets.
const externalSecrets = neighbour("externalsecrets")

const (
	// refreshed is how often each ExternalSecret is.
	refreshed = 3 * time.Second
	// secretSpaces have an ExternalSecret of each kind.
	secretSpaces = 4
)

// secretKinds are the kinds of ExternalSecrets, and the rest of their specs. What is at the provider
// has the name %[1]s there.
var secretKinds = map[string]string{
	"owner": `
  data: [{secretKey: setting, remoteRef: {key: "%[1]s", property: setting}}]
  target: {creationPolicy: Owner}`,
	"extract": `
  dataFrom: [{extract: {key: "%[1]s"}}]`,
	"merge": `
  data: [{secretKey: setting, remoteRef: {key: "%[1]s", property: setting}}]
  target: {creationPolicy: Merge}`,
	"template": `
  data: [{secretKey: word, remoteRef: {key: "%[1]s", property: setting}}]
  target: {template: {engineVersion: v2, data: {setting: "the word is {{ .word }}", other: constant}}}`,
	"immutable": `
  data: [{secretKey: setting, remoteRef: {key: "%[1]s", property: setting}}]
  target: {immutable: true}`,
}

// vault is the providers, and who reads what comes from them.
type vault struct {
	// space has Secrets that the provider "kubernetes" serves; fake is what the provider "fake" has.
	space *harness.Space
	fake  map[string]string
	store string // of the names of both stores
	all   []*external
	began time.Time
	word  int
}

// external is an ExternalSecret, its target and the Deployments that read it.
type external struct {
	space        *harness.Space
	kind, remote string
	readers
	changes, mends int // at the provider, and by hand at the target
}

func (e *external) source() string { return "secret/" + e.kind }

func (e *external) String() string { return e.space.Namespace + "/" + e.kind }

// TestExternalSecrets: Secrets that are read from elsewhere every three seconds.
func TestExternalSecrets(t *testing.T) {
	v := newVault(t)
	readers := v.readers()

	t.Run("ARefreshIsNoChange", func(t *testing.T) {
		begin := time.Now()
		readers.wantStill(t, 30*time.Second)
		v.wantRefreshes(t, begin, 5)
		v.wantWrites(t, begin, func(*external) int { return 0 })
	})
	t.Run("AChangeRollsEachOnce", func(t *testing.T) {
		begin, before := time.Now(), readers.counts()
		for _, e := range v.all {
			v.change(t, e)
		}
		readers.wantRolled(t, before, 4*time.Minute, onceBut(v.kind("immutable")))
		readers.wantServing(t, time.Minute)
		v.wantWrites(t, begin, func(e *external) int { return e.writes(1) })
	})
	t.Run("AnImmutableSecretIsMadeAnew", func(t *testing.T) { // people delete it, to have the change
		begin, before := time.Now(), readers.counts()
		for _, e := range v.kind("immutable") {
			v.remake(t, e)
		}
		v.wantTargets(t)
		others := slices.DeleteFunc(slices.Clone(v.all), func(e *external) bool { return e.kind == "immutable" })
		readers.wantRolled(t, before, 4*time.Minute, onceBut(others))
		v.wantWrites(t, begin, func(*external) int { return 1 })
		readers.wantTruth(t)
	})
	t.Run("ASecretThatPeopleDeleteOrEdit", func(t *testing.T) {
		begin, before := time.Now(), readers.counts()
		for i, e := range v.all {
			if i%2 == 0 || e.kind == "immutable" {
				v.remake(t, e)
			} else {
				v.scribble(t, e)
			}
		}
		v.wantTargets(t)
		time.Sleep(10 * time.Second)
		readers.wantRolled(t, before, time.Minute, func(reader) int { return 0 })
		v.wantWrites(t, begin, func(*external) int { return 2 })
		readers.wantTruth(t)
	})
	t.Run("ABadChangeHaltsAtOne", v.haltsAtOne)
	t.Run("WhilePeopleDoAll", func(t *testing.T) {
		begin, until := time.Now(), time.Now().Add(*long)
		rounds := 0
		for ; time.Now().Before(until); rounds++ {
			before := readers.counts()
			mixed := slices.DeleteFunc(slices.Clone(v.all), func(e *external) bool { return e.kind == "immutable" })
			rand.Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
			half := len(mixed) / 2
			for _, e := range mixed[:half] {
				v.change(t, e)
			}
			for _, e := range mixed[half:] {
				v.remake(t, e)
			}
			for _, e := range mixed[:half/2] { // while they roll
				v.remake(t, e)
			}
			readers.wantRolled(t, before, 4*time.Minute, onceBut(append(v.kind("immutable"), mixed[half:]...)))
			readers.wantServing(t, time.Minute)
			v.wantTargets(t)
			readers.wantTruth(t)
		}
		v.wantWrites(t, begin, func(*external) int { return 3 * rounds })
		t.Logf("%d rounds", rounds)
	})
	v.wantTargets(t)
	readers.wantTruth(t)
	t.Log("writes of everybody:\n" + strings.Join(tally(requests(t, v.began, request.writes)), "\n"))
}

// onceBut wants one rollout of all but those that read some.
func onceBut(still []*external) func(reader) int {
	none := map[string]bool{}
	for _, e := range still {
		for _, r := range e.readers {
			none[r.String()] = true
		}
	}
	return func(r reader) int {
		if none[r.String()] {
			return 0
		}
		return 1
	}
}

// writes is how often the operator writes the target for changes at the provider.
func (e *external) writes(changes int) int {
	if e.kind == "immutable" {
		return 0
	}
	return changes
}

// newVault starts the operator, and makes stores, ExternalSecrets and who reads what they write.
func newVault(t *testing.T) *vault {
	t.Helper()
	dir := filepath.Join(externalSecrets.files(t, "github.com/external-secrets/external-secrets"), "config", "crds", "bases")
	files, err := filepath.Glob(filepath.Join(dir, "*external-secrets.io_*.yaml"))
	harness.Must(t, err)
	install(t, files...)
	v := &vault{space: run.PlainSpace(t), fake: map[string]string{}, began: time.Now()}
	v.store = v.space.Namespace
	// One worker, as it has by default: its provider "fake" crashes if it is asked by two at once.
	operator := externalSecrets.start(t, "github.com/external-secrets/external-secrets", nil,
		"--metrics-addr=0", "--live-addr=0", "--concurrent=1", "--enable-push-secret-reconciler=false",
		"--enable-cluster-push-secret-reconciler=false", "--enable-cluster-external-secret-reconciler=false")
	operator.wait(t, "Starting workers")
	v.makeStores(t)
	for i := range secretSpaces {
		space := run.Space(t)
		// Several edits within ten minutes are what this test is made of.
		space.SetPolicy("namespace", map[string]string{"min-interval": "1ms"})
		for _, kind := range slices.Sorted(maps.Keys(secretKinds)) {
			e := &external{space: space, kind: kind, remote: fmt.Sprintf("%d-%s", i, kind)}
			v.all = append(v.all, e)
			e.readers = append(e.readers, reader{space: space, name: kind, source: e.source(), key: "setting", manner: "strict"})
			if i == 0 {
				e.readers[0].replicas = 1
			}
			if i == 0 && kind == "owner" { // a Secret that more than one read
				for _, more := range []string{"a", "b", "c"} {
					e.readers = append(e.readers, reader{space: space, name: kind + "-" + more, source: e.source(), key: "setting", manner: "strict", replicas: 1})
				}
			}
		}
	}
	for _, e := range v.all {
		v.change(t, e)
		e.changes = 0
		e.make(t, v.store)
	}
	v.wantTargets(t)
	for _, r := range v.readers() {
		r.create()
	}
	v.readers().wantServing(t, 3*time.Minute)
	for _, r := range v.readers() {
		r.space.Settled(r.workload())
	}
	v.readers().wantTruth(t)
	return v
}

// makeStores makes a store of each provider. That of Kubernetes reads the cluster that it is in, with
// a service account of its own.
func (v *vault) makeStores(t *testing.T) {
	t.Helper()
	kubectlInput(t, fmt.Sprintf(`
apiVersion: v1
kind: ServiceAccount
metadata: {name: reads, namespace: %[1]s}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reads, namespace: %[1]s}
rules: [{apiGroups: [""], resources: [secrets], verbs: [get, list, watch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reads, namespace: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reads}
subjects: [{kind: ServiceAccount, name: reads, namespace: %[1]s}]
---
apiVersion: external-secrets.io/v1
kind: ClusterSecretStore
metadata: {name: %[1]s}
spec:
  provider:
    kubernetes:
      remoteNamespace: %[1]s
      server: {url: %[2]q, caBundle: %[3]s}
      auth: {serviceAccount: {name: reads, namespace: %[1]s}}
---
apiVersion: external-secrets.io/v1
kind: ClusterSecretStore
metadata: {name: %[1]s-fake}
spec: {provider: {fake: {data: []}}}
`, v.store, run.Config.Host, base64.StdEncoding.EncodeToString(run.Config.CAData)), "apply", "--server-side", "-f", "-")
	t.Cleanup(func() {
		stores := schema.GroupVersionResource{Group: "external-secrets.io", Version: "v1", Resource: "clustersecretstores"}
		for _, name := range []string{v.store, v.store + "-fake"} {
			_ = run.Dynamic.Resource(stores).Delete(bounded(), name, metav1.DeleteOptions{})
		}
	})
}

// make makes the ExternalSecret, and for Merge what it is merged into.
func (e *external) make(t *testing.T, store string) {
	t.Helper()
	if e.kind == "merge" {
		e.space.Set(e.source(), "own", "somebody's")
	}
	if e.kind == "template" {
		store += "-fake"
	}
	kubectlInput(t, fmt.Sprintf(`
apiVersion: external-secrets.io/v1
kind: ExternalSecret
metadata: {name: %[2]s, namespace: %[3]s}
spec:
  refreshInterval: %[4]s
  secretStoreRef: {kind: ClusterSecretStore, name: %[5]s}
`+strings.TrimPrefix(secretKinds[e.kind], "\n"), e.remote, e.kind, e.space.Namespace, refreshed, store), "apply", "--server-side", "-f", "-")
}

func (v *vault) readers() (all readers) {
	for _, e := range v.all {
		all = append(all, e.readers...)
	}
	return all
}

func (v *vault) kind(kind string) []*external {
	return slices.DeleteFunc(slices.Clone(v.all), func(e *external) bool { return e.kind != kind })
}

// change gives a Secret another content at its provider.
func (v *vault) change(t *testing.T, e *external) {
	t.Helper()
	v.word++
	v.set(t, e, fmt.Sprintf("good-%d", v.word))
}

// set gives a Secret a content at its provider.
func (v *vault) set(t *testing.T, e *external, word string) {
	t.Helper()
	e.changes++
	v.fake[e.remote] = word // what is wanted; for the other provider too
	if e.kind != "template" {
		v.space.Set("secret/"+e.remote, "setting", word)
		return
	}
	var data []map[string]string
	for _, other := range v.kind("template") {
		if word, there := v.fake[other.remote]; there {
			data = append(data, map[string]string{"key": other.remote, "value": fmt.Sprintf(`{"setting":%q}`, word)})
		}
	}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"provider": map[string]any{"fake": map[string]any{"data": data}}}})
	harness.Must(t, err)
	stores := schema.GroupVersionResource{Group: "external-secrets.io", Version: "v1", Resource: "clustersecretstores"}
	_, err = run.Dynamic.Resource(stores).Patch(t.Context(), v.store+"-fake", types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "e2e"})
	harness.Must(t, err)
}

// wantTargets waits until each target holds what its provider has, and what others have put into it.
func (v *vault) wantTargets(t *testing.T) {
	t.Helper()
	for _, e := range v.all {
		want := v.fake[e.remote]
		if e.kind == "template" {
			want = "the word is " + want
		}
		eventually(t, "waiting for "+e.String(), time.Minute, func() error {
			data, err := held(t.Context(), e.space.Namespace, e.source())
			switch {
			case err != nil:
				return err
			case string(data["setting"]) != want:
				return fmt.Errorf("it holds %q, want %q", data["setting"], want)
			case e.kind == "merge" && string(data["own"]) != "somebody's":
				return errors.New("what was in it before is gone")
			}
			return nil
		})
	}
}

// remake deletes a target by hand, and waits until it is there again. What others merge into is made
// by its owner.
func (v *vault) remake(t *testing.T, e *external) {
	t.Helper()
	was := e.space.Get(e.source())
	e.mends++
	e.space.Delete(e.source())
	if e.kind == "merge" {
		e.space.Set(e.source(), "own", "somebody's")
	}
	eventually(t, "waiting for "+e.String(), time.Minute, func() error { return isAgain(e.space, e.source(), was) })
}

// scribble writes into a target by hand what the app does not like, and waits until that is gone.
func (v *vault) scribble(t *testing.T, e *external) {
	t.Helper()
	e.mends++
	e.space.Edit(e.source(), "setting", "bad")
	eventually(t, "waiting for "+e.String(), time.Minute, func() error {
		data, err := held(t.Context(), e.space.Namespace, e.source())
		if err == nil && string(data["setting"]) == "bad" {
			err = errors.New("it is as somebody has edited it")
		}
		return err
	})
}

// haltsAtOne changes a Secret that four read so that they crash.
func (v *vault) haltsAtOne(t *testing.T) {
	shared := v.all[slices.IndexFunc(v.all, func(e *external) bool { return len(e.readers) > 1 })]
	before, good := shared.counts(), v.fake[shared.remote]
	v.set(t, shared, "bad")
	space := shared.space.In(t)
	space.WantNote(shared.source(), "ChangeHalted")
	time.Sleep(3 * refreshed) // refreshes do not make it go on
	failed := shared.rolled(before)
	if len(failed) != 1 {
		t.Errorf("%v rolled with the bad content, want one", failed)
	}
	shared.wantServed(t)
	v.set(t, shared, good)
	shared.wantServing(t, 2*time.Minute)
	time.Sleep(settle + 3*time.Second)
	again := shared.counts()
	for _, r := range shared.readers {
		want := before[r.String()].Rolls
		if slices.ContainsFunc(failed, func(f reader) bool { return f == r }) {
			want += 2 // there and back
		}
		if again[r.String()].Rolls != want {
			t.Errorf("%s rolled %d times in all, want %d", r, again[r.String()].Rolls, want)
		}
	}
	shared.wantTruth(t)
}

// wantRefreshes checks that the operator has asked the provider for each ExternalSecret of the
// provider "kubernetes" so often since a time.
func (v *vault) wantRefreshes(t *testing.T, since time.Time, least int) {
	t.Helper()
	asked := map[string]int{}
	for _, q := range requests(t, since, func(q request) bool {
		return q.Verb == "get" && q.Resource == "secrets" && q.Namespace == v.space.Namespace && q.Agent == "external-secrets"
	}) {
		asked[q.Name]++
	}
	for _, e := range v.all {
		if n := asked[e.remote]; e.kind != "template" && n < least {
			t.Errorf("the provider was asked for %s %d times, want at least %d: nothing was refreshed", e.remote, n, least)
		}
	}
	objects, _ := written(t, since, "external-secrets", "externalsecrets", func(request) bool { return true })
	t.Logf("the operator asked its provider: %s; it wrote the status of ExternalSecrets: %s", spread(asked), spread(objects))
}

// wantWrites checks that each target was written so often at most since a time, that configstamp wrote
// Deployments no more often than twice for each write of a target, and that it wrote no Secret.
func (v *vault) wantWrites(t *testing.T, since time.Time, most func(*external) int) {
	t.Helper()
	targets, refused := written(t, since, "external-secrets", "secrets", func(q request) bool { return q.Namespace != "" })
	t.Logf("the operator wrote targets: %s, %d refused", spread(targets), refused)
	sent, sentRefused := written(t, since, controller, "deployments", func(request) bool { return true })
	t.Logf("configstamp wrote Deployments: %s, %d refused", spread(sent), sentRefused)
	for _, e := range v.all {
		if n := targets["secrets/"+e.space.Namespace+"/"+e.kind]; n > most(e) {
			t.Errorf("the operator wrote %s %d times, want at most %d", e, n, most(e))
		}
		for _, r := range e.readers {
			if n := sent["deployments/"+r.String()]; n > 2*most(e) {
				t.Errorf("configstamp wrote %s %d times, want at most %d", r, n, 2*most(e))
			}
		}
	}
	ours, _ := written(t, since, controller, "secrets", func(q request) bool { return q.Namespace != harness.OwnNamespace })
	if len(ours) > 0 {
		t.Errorf("configstamp wrote Secrets: %v", ours)
	}
}
