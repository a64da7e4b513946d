package neighbours

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/configstamp/configstamp/e2e/harness"
)

// Flux's source-controller fetches Git, and its kustomize-controller applies what is there: a dry
// run of each object every interval, and a server-side apply of what differs.
const (
	fluxSource    = neighbour("flux-source")
	fluxKustomize = neighbour("flux-kustomize")

	// fluxInterval is how often Flux compares the cluster with Git.
	fluxInterval = 10 * time.Second
	// fluxTimeout is how long it waits for health, and so for anything else: a Kustomization that
	// waits applies nothing.
	fluxTimeout = 30 * time.Second

	// The clients of the API server.
	fluxAgent        = "kustomize-controller"
	configstampAgent = "configstamp-controller"
)

// startFlux runs both controllers until the test ends.
func startFlux(t *testing.T) {
	t.Helper()
	source, kustomize := fluxSource.files(t, "github.com/fluxcd/source-controller"), fluxKustomize.files(t, "github.com/fluxcd/kustomize-controller")
	install(t, filepath.Join(source, "config", "crd", "bases"), filepath.Join(kustomize, "config", "crd", "bases"))
	kubectl(t, "create", "namespace", "flux-system")
	address := freeAddress(t)
	environment := []string{"RUNTIME_NAMESPACE=flux-system"}
	nothingServed := []string{"--metrics-addr=0", "--health-addr=0"}
	fluxSource.start(t, "github.com/fluxcd/source-controller", environment, append(nothingServed,
		"--storage-path="+t.TempDir(), "--storage-addr="+address, "--storage-adv-addr="+address)...)
	fluxKustomize.start(t, "github.com/fluxcd/kustomize-controller", environment, append(nothingServed, "--requeue-dependency=5s")...)
}

// freeAddress is one of the loopback at which nothing listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	harness.Must(t, err)
	defer listener.Close()
	return listener.Addr().String()
}

// fluxed is a namespace that Flux keeps as Git says.
type fluxed struct {
	*harness.Space
	git   *repository
	says  map[string]string // what Git says, by the names of files
	names []string          // of Kustomizations
	heals map[string]int    // how often Flux had to put an object right, which costs it two writes
	made  map[string]int    // how often somebody changed an object in Git
	since time.Time
}

// newFluxed makes a namespace and has Flux sync it, as deploy/gitops says, but more often. Each
// Kustomization is a folder of Git, and what its spec has otherwise.
func newFluxed(t *testing.T, kustomizations map[string]map[string]any, files map[string]string) *fluxed {
	t.Helper()
	f := &fluxed{Space: run.Space(t), says: map[string]string{}, heals: map[string]int{}, made: map[string]int{}, since: time.Now()}
	f.SetPolicy("namespace", map[string]string{"min-interval": "1ms"}) // many edits within ten minutes
	maps.Copy(f.says, f.named(files))
	f.git = newRepository(t, f.says)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(f.Report(), f.status())
		}
	})
	t.Cleanup(func() { // else Flux goes on with a namespace that goes
		kubectl(t, append([]string{"delete", "--namespace=flux-system", "--wait=false", "kustomizations.kustomize.toolkit.fluxcd.io"}, f.names...)...)
		kubectl(t, "delete", "--namespace=flux-system", "gitrepositories.source.toolkit.fluxcd.io", f.Namespace)
	})
	repository, kustomization := fluxExample(t)
	repository.SetName(f.Namespace)
	field(t, repository, f.git.URL, "spec", "url")
	field(t, repository, "5s", "spec", "interval")
	f.apply(t, repository)
	for _, folder := range slices.Sorted(maps.Keys(kustomizations)) {
		each := kustomization.DeepCopy()
		each.SetName(f.Namespace + "-" + folder)
		f.names = append(f.names, each.GetName())
		field(t, each, f.Namespace, "spec", "sourceRef", "name")
		field(t, each, "./"+folder, "spec", "path")
		field(t, each, fluxInterval.String(), "spec", "interval")
		field(t, each, fluxTimeout.String(), "spec", "timeout")
		for name, value := range kustomizations[folder] {
			field(t, each, value, "spec", name)
		}
		f.apply(t, each)
	}
	f.synced(t)
	return f
}

// in gives the same namespace to a subtest.
func (f *fluxed) in(t *testing.T) *fluxed {
	same := *f
	same.Space = f.In(t)
	return &same
}

// named writes the namespace's name into manifests.
func (f *fluxed) named(files map[string]string) map[string]string {
	named := map[string]string{}
	for name, text := range files {
		named[name] = strings.ReplaceAll(text, "NAMESPACE", f.Namespace)
	}
	return named
}

// push commits files, and nobody waits. A file without text goes.
func (f *fluxed) push(t *testing.T, message string, files map[string]string) {
	t.Helper()
	files = f.named(files)
	for name, text := range files {
		if f.says[name] != text {
			f.made[objectOf(t, cmp.Or(text, f.says[name]))]++
		}
	}
	f.git.push(t, message, files)
	maps.Copy(f.says, files)
	maps.DeleteFunc(f.says, func(_, text string) bool { return text == "" })
}

// sync is push, and waits until Flux has applied it and seen all healthy.
func (f *fluxed) sync(t *testing.T, message string, files map[string]string) {
	t.Helper()
	f.push(t, message, files)
	f.synced(t)
}

// synced waits until Flux says that all is as Git says.
func (f *fluxed) synced(t *testing.T) {
	t.Helper()
	for _, name := range f.names {
		eventually(t, "Flux syncs "+name, 3*time.Minute, func() error {
			revision := f.field(t, name, "{.status.lastAppliedRevision}")
			ready := f.field(t, name, `{.status.conditions[?(@.type=="Ready")].status}`)
			if ready != "True" || !strings.HasSuffix(revision, f.git.head(t)) {
				return fmt.Errorf("ready %s, applied %s, Git has %s", ready, revision, f.git.head(t))
			}
			return nil
		}, f.status)
	}
}

// field is one of a Kustomization's.
func (f *fluxed) field(t *testing.T, name, path string) string {
	t.Helper()
	return kubectl(t, "get", "kustomizations.kustomize.toolkit.fluxcd.io", name, "--namespace=flux-system", "-o=jsonpath="+path)
}

// status is what Flux says of the namespace.
func (f *fluxed) status() string {
	result, err := run.Kubectl("", "get", "gitrepositories,kustomizations", "--namespace=flux-system", "-o=wide")
	return fmt.Sprintln(result.Stdout, result.Stderr, err)
}

// wantAsGit checks that all that Git says is so.
func (f *fluxed) wantAsGit(t *testing.T) {
	t.Helper()
	if err := f.asGit(); err != nil {
		t.Error(err)
	}
}

func (f *fluxed) asGit() error {
	for _, name := range slices.Sorted(maps.Keys(f.says)) {
		want := map[string]any{}
		if err := yaml.Unmarshal([]byte(f.says[name]), &want); err != nil {
			return fmt.Errorf("reading %s: %w", name, err)
		}
		object := &unstructured.Unstructured{Object: want}
		live, err := f.TryGet(strings.ToLower(object.GetKind()) + "/" + object.GetName())
		if err != nil {
			return err
		}
		if text, ok := want["stringData"].(map[string]any); ok { // which the API server stores as data
			delete(want, "stringData")
			data := map[string]any{}
			for key, value := range text {
				data[key] = base64.StdEncoding.EncodeToString([]byte(fmt.Sprint(value)))
			}
			want["data"] = data
		}
		if where := lacks(live.Object, want); where != "" {
			return fmt.Errorf("%s is not as Git says at %s", object.GetName(), where)
		}
	}
	return nil
}

// lacks is where an object has not what is wanted, or has it otherwise; more it may have.
func lacks(has, want any) string {
	switch want := want.(type) {
	case map[string]any:
		fields, _ := has.(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(want)) {
			if where := lacks(fields[name], want[name]); where != "" {
				return "." + name + where
			}
		}
		return ""
	case []any:
		items, _ := has.([]any)
		if len(items) != len(want) {
			return fmt.Sprintf(" (%d items, want %d)", len(items), len(want))
		}
		for i := range want {
			if where := lacks(items[i], want[i]); where != "" {
				return fmt.Sprintf("[%d]%s", i, where)
			}
		}
		return ""
	}
	if fmt.Sprint(has) != fmt.Sprint(want) {
		return fmt.Sprintf(" (%v, want %v)", has, want)
	}
	return ""
}

// wantTruth waits until all stamps are those of what the sources hold. Each of these is
// "deployment/web configmap/settings".
func (f *fluxed) wantTruth(t *testing.T, uses ...string) {
	t.Helper()
	eventually(t, "stamps become true", 2*time.Minute, func() error {
		for _, use := range uses {
			workload, source, _ := strings.Cut(use, " ")
			if got, want := f.Stamp(workload, source), f.Digest(source); got != want {
				return fmt.Errorf("%s has the stamp %q of %s, want %q", workload, got, source, want)
			}
		}
		return nil
	}, f.Report)
}

// writes are those that one agent asked for, by object of the namespace: deployment/web.
func (f *fluxed) writes(t *testing.T, agent string) map[string]int {
	t.Helper()
	counts := map[string]int{}
	for _, q := range requests(t, f.since, func(q request) bool {
		return q.Namespace == f.Namespace && q.Agent == agent && q.writes() && q.Subresource == ""
	}) {
		counts[strings.TrimSuffix(q.Resource, "s")+"/"+q.Name]++
	}
	if len(counts) == 0 {
		t.Errorf("%s wrote nothing: this compares nothing", agent)
	}
	return counts
}

// wantNoFight compares how often Flux and configstamp wrote each object with what was to be
// written: an edit in Git or a heal by Flux, a rollout by configstamp.
func (f *fluxed) wantNoFight(t *testing.T) {
	t.Helper()
	all := requests(t, f.since, func(q request) bool {
		return q.Namespace == f.Namespace && (q.Agent == fluxAgent || q.Agent == configstampAgent)
	})
	flux, configstamp, counts := f.writes(t, fluxAgent), f.writes(t, configstampAgent), f.Counts()
	t.Logf("in %s:\n%s\nwrites by Flux: %v\nedits in Git: %v\nheals: %v\nwrites by configstamp: %v\nrollouts: %v",
		time.Since(f.since).Round(time.Second), strings.Join(tally(all), "\n"), flux, f.made, f.heals, configstamp, counts)
	for object, times := range flux {
		// One creates it.
		if most := 1 + f.made[object] + 2*f.heals[object]; times > most {
			t.Errorf("Flux wrote %s %d times, want at most %d: %d edits in Git, %d heals", object, times, most, f.made[object], f.heals[object])
		}
	}
	for object, times := range configstamp {
		// A patch that changes nothing yet is sent again, rarely.
		if most := 1 + counts[object].Rolls; times > most {
			t.Errorf("configstamp wrote %s %d times, want at most %d: it rolled %d times", object, times, most, counts[object].Rolls)
		}
	}
}

// fluxExample is what deploy/gitops tells people to write.
func fluxExample(t *testing.T) (repository, kustomization *unstructured.Unstructured) {
	t.Helper()
	text, err := os.ReadFile("../../deploy/gitops/flux-kustomization.yaml")
	harness.Must(t, err)
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		object := &unstructured.Unstructured{}
		harness.Must(t, yaml.Unmarshal([]byte(document), &object.Object))
		if object.GetKind() == "Kustomization" {
			kustomization = object
		} else {
			repository = object
		}
	}
	return repository, kustomization
}

func field(t *testing.T, object *unstructured.Unstructured, value any, path ...string) {
	t.Helper()
	harness.Must(t, unstructured.SetNestedField(object.Object, value, path...))
}

// apply is kubectl apply of an object, of a cluster's administrator.
func (f *fluxed) apply(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	text, err := yaml.Marshal(object.Object)
	harness.Must(t, err)
	result, err := run.Kubectl(strings.ReplaceAll(string(text), "NAMESPACE", f.Namespace), "apply", "--server-side", "-f", "-")
	if err == nil && result.Code != 0 {
		err = errors.New(result.Stderr)
	}
	if err != nil {
		t.Fatalf("kubectl apply: %v\n%s", err, text)
	}
}

// objectOf names the first object of a manifest: deployment/web.
func objectOf(t *testing.T, manifest string) string {
	t.Helper()
	object := unstructured.Unstructured{}
	first, _, _ := strings.Cut(manifest, "\n---")
	harness.Must(t, yaml.Unmarshal([]byte(first), &object.Object))
	return strings.ToLower(object.GetKind()) + "/" + object.GetName()
}
