package controller

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/workload"
)

// What the rule looks at, the controller tells it.
func TestSync_WhoIsServed(t *testing.T) {
	h := newHouse(t, newCluster(t))
	for about, c := range map[string]struct {
		namespace string
		s         Workload
		want      bool
	}{
		"one in a Namespace that is opted in":      {"shop", Workload{}, true},
		"one in another Namespace":                 {"bank", Workload{}, false},
		"one that opts in":                         {"bank", Workload{Inject: checksum.InjectEnabled}, true},
		"one that opts in, in an excluded one":     {"kube-system", Workload{Inject: checksum.InjectEnabled}, false},
		"one that opts out":                        {"shop", Workload{Inject: checksum.InjectDisabled}, false},
		"one that is being deleted":                {"shop", Workload{Deleting: true}, false},
		"one whose owner makes its template":       {"shop", Workload{Owned: true}, false},
		"one that another product's dialect marks": {"bank", Workload{Foreign: &checksum.Foreign{Kinds: checksum.Kinds()}}, true},
	} {
		if got := h.serves(workload.Ref{Kind: h.cluster.kind, Namespace: c.namespace, Name: "d"}, &c.s); got != c.want {
			t.Errorf("%s: served: %t, want %t", about, got, c.want)
		}
	}
}

// Nobody has labelled the Namespace: what is there is recorded, and rolls when it changes.
func TestSync_TheWholeClusterIsOptedIn(t *testing.T) {
	c := newCluster(t)
	c.optIn, c.inject = checksum.OptInAll, map[string]string{"out": checksum.InjectDisabled}
	c.write("c", map[string]string{"k": "1"})
	d := c.deploy("d", "c")
	h := newHouse(t, c)
	h.mustSync(t, d)
	if calls, _ := h.happened(); !slices.Contains(calls, checksum.RecordingManager+" d") || slices.Contains(calls, checksum.RollingManager+" d") {
		t.Errorf("at first it sends %q", calls)
	}
	c.write("c", map[string]string{"k": "2"})
	h.rest()
	h.mustSync(t, d)
	if calls, _ := h.happened(); !slices.Contains(calls, checksum.RollingManager+" d") || !c.stampedTrue(d) {
		t.Errorf("after an edit it sends %q", calls)
	}
	for about, test := range map[string]struct {
		namespace, inject string
		want              bool
	}{
		"another Namespace without the label":       {"bank", "", true},
		"a workload that opts out":                  {"bank", checksum.InjectDisabled, false},
		"a Namespace that opts out":                 {"out", "", false},
		"a workload that opts in there":             {"out", checksum.InjectEnabled, true},
		"kube-system":                               {"kube-system", "", false},
		"kube-node-lease":                           {"kube-node-lease", "", false},
		"a workload that opts in in a system's one": {"kube-node-lease", checksum.InjectEnabled, false},
	} {
		if got := h.serves(workload.Ref{Kind: c.kind, Namespace: test.namespace, Name: "d"}, &Workload{Inject: test.inject}); got != test.want {
			t.Errorf("%s: served: %t, want %t", about, got, test.want)
		}
	}
}

// Who may write a workload may name thousands of Secrets and keys that there are not.
func TestReview_AsksForFewOfManyThatAreMissing(t *testing.T) {
	h := newHouse(t, newCluster(t))
	s := &Workload{Records: checksum.Records{Stamps: map[string]string{}}}
	for i := range 100 {
		source := checksum.Source{Kind: checksum.Secret, Name: fmt.Sprintf("s-%03d", i)}
		s.References = append(s.References, checksum.Reference{Source: source, All: true, Use: checksum.Startup})
		s.Records.Stamps[checksum.StampKey(source)] = fmt.Sprintf("v1:%08x:all:%032d", i, 0)
	}
	if _, err := h.reviewOf(t.Context(), workload.Ref{Kind: h.cluster.kind, Namespace: "shop", Name: "d"}, s); err != nil {
		t.Fatal(err)
	}
	if h.cluster.refreshes != mostAsked || h.cluster.confirms != mostAsked {
		t.Errorf("it asked for %d keys and %d Secrets, want %d of each", h.cluster.refreshes, h.cluster.confirms, mostAsked)
	}
}

// A workload whose pin has pods start with something else than its stamp says is out of date, for
// a process that pins.
func TestReview_APinOfOtherContentIsUntrue(t *testing.T) {
	w, at := fleet(t, 1)
	app := w.apps[w.names[0]]
	old := w.contents[at]
	w.edit(at, w.newContent())
	w.pass(time.Minute)
	w.wantAllTrue()
	name := w.ring.SnapshotName("shop", at.Source, old)
	pinned := &Workload{References: w.controller.index.Get(app.ref).References, Records: app.records}
	pinned.Records.Pins = map[string]string{checksum.PinsAnnotation: checksum.Pins{at.Source: {Snapshot: name, Uses: []checksum.Use{checksum.Startup}}}.String()}
	untrue := func() []checksum.Source {
		review, err := w.controller.reviewOf(t.Context(), app.ref, pinned)
		if err != nil {
			t.Fatal(err)
		}
		return review.Untrue
	}
	if found := untrue(); len(found) > 0 {
		t.Errorf("without pins %v are out of date", found)
	}
	w.controller.options.SnapshotOf = func(namespace, of string, source checksum.Source) *checksum.Content {
		if namespace != "shop" || of != name || source != at.Source {
			t.Errorf("asked for snapshot %s of %s in %s", of, source, namespace)
		}
		return old
	}
	if found := untrue(); !slices.Equal(found, []checksum.Source{at.Source}) {
		t.Errorf("out of date are %v", found)
	}
}

var vault = checksum.Source{Kind: checksum.SecretProviderClass, Name: "vault"}

// report is what pods of the class report now; without a version, nobody does.
func (c *cluster) report(version string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if delete(c.contents, vault); version != "" {
		c.contents[vault] = checksum.ContentOfVersions(map[string]string{"secret/db": version})
	}
}

// mounting is a house of a Deployment that mounts the class, and is not on record.
func mounting(t *testing.T, counts bool) (*house, workload.Ref) {
	t.Helper()
	c := newCluster(t)
	c.policy.SecretProviderClasses = counts
	d := c.deploy("d")
	spec := c.objects[d]["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
	spec["containers"].([]any)[0].(map[string]any)["volumeMounts"] = []any{map[string]any{"name": "v", "mountPath": "/v"}}
	spec["volumes"] = []any{map[string]any{"name": "v", "csi": map[string]any{
		"driver": "secrets-store.csi.k8s.io", "volumeAttributes": map[string]any{"secretProviderClass": vault.Name}}}}
	return newHouse(t, c), d
}

func TestSync_TheVersionsOfASecretProviderClass(t *testing.T) {
	for about, c := range map[string]struct {
		reports []string // "" is nobody
		calls   string
		says    string
		off     bool
	}{
		"nobody reports":                  {[]string{""}, "", "", false},
		"the first report is recorded":    {[]string{"", "1"}, "get d, dry configstamp-record d, configstamp-record d", "is recorded as it is now", false},
		"the same again is nothing":       {[]string{"1", "1"}, "", "", false},
		"nobody reports any more":         {[]string{"1", ""}, "", "", false},
		"somebody does again, the same":   {[]string{"1", "", "1"}, "", "", false},
		"another version rolls":           {[]string{"1", "2"}, "configstamp d", "secretproviderclass/vault changed: rolling out", false},
		"another one, after nobody did":   {[]string{"1", "", "2"}, "configstamp d", "secretproviderclass/vault changed: rolling out", false},
		"without the flag it is nothing":  {[]string{"", "1"}, "", "", true},
		"nor is another version, without": {[]string{"1", "2"}, "", "", true},
	} {
		t.Run(about, func(t *testing.T) {
			h, d := mounting(t, !c.off)
			for _, version := range c.reports {
				h.happened()
				h.cluster.report(version)
				h.Changed("shop", vault)
				h.rest()
				h.mustSync(t, d)
			}
			calls, said := h.happened()
			if strings.Join(calls, ", ") != c.calls || !strings.Contains(strings.Join(said, "\n"), c.says) || len(said) != min(len(calls), 1) {
				t.Errorf("calls %q, want %q; events %q", calls, c.calls, said)
			}
			refs := h.index.Using("shop", vault)
			if slices.Contains(refs, d) == c.off {
				t.Errorf("it concerns %v", refs)
			}
		})
	}
}
