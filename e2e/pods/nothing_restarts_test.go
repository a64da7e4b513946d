package pods

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configstamp/configstamp/e2e/harness"
)

var cluster *Cluster

func TestMain(m *testing.M) {
	os.Exit(Wanted{}.Main(m, func(c *Cluster) error { cluster = c; return nil }))
}

// Whatever happens to an installation, workloads with running Pods are not
// restarted by it; each time, another workload whose ConfigMap is edited is, so
// that nothing passes because nobody works.
func TestNothingRestarts(t *testing.T) {
	ctx := t.Context()
	harness.Must(t, cluster.LoadImage(ctx, "configstamp:next", "next"))
	release(t, "dev", "install", "--create-namespace")
	inst := &installed{t: t, edited: cluster.Space(t), still: []*harness.Space{cluster.Space(t), cluster.PlainSpace(t)}}
	inst.begin()

	inst.during("an upgrade", func() { release(t, "next", "upgrade") })
	inst.during("a rollback", func() {
		_, err := cluster.Helm(ctx, "rollback", "configstamp", "1", "--namespace", harness.OwnNamespace)
		harness.Must(t, err)
		cluster.WaitServing(t)
		wantImage(t, "configstamp:dev")
	})
	inst.during("another key", func() { rotateKey(t) })
	inst.during("the key's Secret deleted", func() {
		before := keys(t)
		cluster.Own(t, "delete", "secret", "configstamp-key")
		inst.edited.Eventually("waiting for the keys to be put back", func() error {
			if now, err := cluster.Keys(); err != nil || len(now) != len(before) {
				return fmt.Errorf("there are %d, want %d: %w", len(now), len(before), err)
			}
			return nil
		})
	})
	inst.during("an upgrade after Secrets were made anew", func() {
		cluster.Own(t, "delete", "secret", "configstamp-tls")
		inst.edited.Eventually("waiting for another certificate", func() error {
			secret, err := cluster.Client.CoreV1().Secrets(harness.OwnNamespace).Get(ctx, "configstamp-tls", metav1.GetOptions{})
			if err == nil && len(secret.Data["tls.crt"]) == 0 {
				err = fmt.Errorf("it is empty")
			}
			return err
		})
		release(t, "next", "upgrade")
	})
	inst.during("the key lost while nobody was there", func() {
		before := keys(t)
		cluster.Own(t, "scale", "deployment/configstamp", "--replicas=0")
		cluster.Own(t, "delete", "pods", "--all", "--grace-period=1", "--wait")
		cluster.Own(t, "patch", "secret", "configstamp-key", "--type=json", `--patch=[{"op":"remove","path":"/data"}]`)
		cluster.Own(t, "scale", "deployment/configstamp", "--replicas=2")
		cluster.WaitServing(t)
		for name := range keys(t) {
			if _, known := before[name]; known {
				t.Errorf("the key %s was not lost", name)
			}
		}
	}, recorded)
	inst.during("uninstalling", func() {
		_, err := cluster.Helm(ctx, "uninstall", "configstamp", "--namespace", harness.OwnNamespace, "--wait")
		harness.Must(t, err)
		wantNoTrace(t)
	}, alone)
	inst.during("installing anew, without the old keys", func() { cluster.Install(t) }, recorded)
	cluster.Uninstall(t)
}

// installed is an installation with workloads that use it.
type installed struct {
	t *testing.T
	// still are namespaces in which nothing may restart: one was opted in from the
	// beginning, the other has workloads that are older than that.
	still  []*harness.Space
	edited *harness.Space
	edits  int
}

// note is what is different in a step.
type note int

const (
	recorded note = iota // baselines are written, which raises generations
	alone                // nobody is there to restart anything
)

var workloads = []string{"deployment/app", "statefulset/app", "daemonset/app"}

const podTemplate = `{metadata: {labels: {app: app}}, spec: {terminationGracePeriodSeconds: 1, containers: [{name: app, image: "configstamp/pause:1", imagePullPolicy: Never, envFrom: [{configMapRef: {name: settings}}, {secretRef: {name: password}}]}]}}`

func fleet(kinds ...string) string {
	var manifest strings.Builder
	for _, kind := range kinds {
		fmt.Fprintf(&manifest, "---\napiVersion: apps/v1\nkind: %s\nmetadata: {name: app}\nspec: {selector: {matchLabels: {app: app}}, template: %s}\n", kind, podTemplate)
	}
	return manifest.String()
}

func (i *installed) begin() {
	t := i.t
	t.Helper()
	for _, s := range append([]*harness.Space{i.edited}, i.still...) {
		s.WaitServiceAccount()
		s.Set("configmap/settings", "MESSAGE", "hello world")
		s.Set("secret/password", "PASSWORD", "correct horse battery staple")
	}
	i.edited.Create(fleet("Deployment"))
	i.edited.Settled("deployment/app")
	for _, s := range i.still {
		s.Create(fleet("Deployment", "StatefulSet", "DaemonSet"))
		s.Settled(workloads...)
	}
	i.still[1].Label("enabled")
	for _, s := range i.still {
		i.waitRecords(s, workloads...)
		for _, workload := range workloads {
			s.Kubectl("rollout", "status", workload, "--timeout=5m")
		}
	}
	if len(harness.Baseline(i.still[1].Get("deployment/app"))) == 0 || len(harness.Stamps(i.still[0].Get("deployment/app"))) == 0 {
		t.Fatal("there must be a workload with baselines, and one with stamps")
	}
}

// waitRecords waits until every record of some workloads is true under the newest key.
func (i *installed) waitRecords(s *harness.Space, workloads ...string) {
	i.t.Helper()
	for _, workload := range workloads {
		for _, source := range []string{"configmap/settings", "secret/password"} {
			s.Eventually("waiting for the record of "+workload, func() error {
				if got, want := s.Record(workload, source), s.Digest(source); got != want {
					return fmt.Errorf("of %s it is %q, want %q", source, got, want)
				}
				return nil
			})
		}
	}
}

// during does a step, and checks that it restarts nothing.
func (i *installed) during(step string, do func(), notes ...note) {
	t, began := i.t, time.Now()
	if t.Failed() {
		return // what follows builds upon it
	}
	var counts []harness.Counts
	var pods []map[string]int32
	for _, s := range i.still {
		counts, pods = append(counts, s.Counts()), append(pods, i.pods(s))
	}
	do()
	for _, s := range i.still {
		for _, workload := range workloads { // somebody writes it; a label raises no generation
			s.Patch(workload, fmt.Sprintf(`{"metadata":{"labels":{"example.com/touched":"%d"}}}`, i.edits))
		}
		if slices.Contains(notes, recorded) {
			i.waitRecords(s, workloads...)
		}
		if slices.Contains(notes, alone) {
			s.Edit("configmap/settings", "MESSAGE", "nobody is told")
		}
	}
	if slices.Contains(notes, recorded) { // an edit before that is not known to be one
		i.waitRecords(i.edited, "deployment/app")
	}
	if slices.Contains(notes, alone) {
		i.edited.Quiet()
	} else {
		i.edit() // and waits longer than anything would take
	}
	for n, s := range i.still {
		for workload, now := range s.Counts() {
			was := counts[n][workload]
			if now.Rolls != was.Rolls || now.Revisions != was.Revisions || !slices.Contains(notes, recorded) && now.Generation != was.Generation {
				t.Errorf("%s: %s in %s: %+v, before %+v", step, workload, s.Namespace, now, was)
			}
		}
		if now := i.pods(s); !maps.Equal(now, pods[n]) {
			t.Errorf("%s: the Pods in %s, with their restarts, are %v, before %v", step, s.Namespace, now, pods[n])
		}
	}
	if t.Failed() {
		return
	}
	t.Logf("%s: %d workloads with %d Pods, 0 restarts, %.0fs", step, len(i.still)*len(workloads), len(pods[0])+len(pods[1]), time.Since(began).Seconds())
}

// edit shows that configstamp works: what is edited rolls, once, and gets a
// stamp under the newest key.
func (i *installed) edit() {
	i.t.Helper()
	before := i.edited.Counts()
	i.edits++
	i.edited.Edit("configmap/settings", "MESSAGE", fmt.Sprintf("edit %d", i.edits))
	i.edited.WantRolls(before, harness.Rolls{"deployment/app": 1})
	if got, want := i.edited.Stamp("deployment/app", "configmap/settings"), i.edited.Digest("configmap/settings"); got != want {
		i.t.Errorf("the stamp after the edit is %s, want %s", got, want)
	}
}

// pods are the restarts of each Pod's container, by the Pod's UID.
func (i *installed) pods(s *harness.Space) map[string]int32 {
	i.t.Helper()
	list, err := cluster.Client.CoreV1().Pods(s.Namespace).List(context.Background(), metav1.ListOptions{})
	harness.Must(i.t, err)
	found := map[string]int32{}
	for _, pod := range list.Items {
		for _, container := range pod.Status.ContainerStatuses {
			found[pod.Name+"/"+string(pod.UID)] = container.RestartCount
		}
	}
	return found
}

// release has helm install or upgrade to an image of the product.
func release(t *testing.T, tag, command string, args ...string) {
	t.Helper()
	_, err := cluster.Helm(t.Context(), append([]string{command, "configstamp", "deploy/chart", "--namespace", harness.OwnNamespace,
		"--set=image.tag=" + tag, "--set=webhook.extraArgs={--key-grace=3s}", "--set=controller.extraArgs={--key-grace=3s}"}, args...)...)
	harness.Must(t, err)
	cluster.WaitServing(t)
	wantImage(t, "configstamp:"+tag)
}

func wantImage(t *testing.T, image string) {
	t.Helper()
	if got := cluster.Own(t, "get", "deployment/configstamp", "-o", "jsonpath={.spec.template.spec.containers[*].image}"); got != image+" "+image {
		t.Fatalf("the images are %s, want %s", got, image)
	}
}

// keys are those of the digests, by name.
func keys(t *testing.T) map[string]bool {
	t.Helper()
	all, err := cluster.Keys()
	harness.Must(t, err)
	names := map[string]bool{}
	for _, key := range all {
		names[key.Name] = true
	}
	return names
}

// rotateKey does what docs/upgrade.md#the-key says: it adds an entry to the Secret.
func rotateKey(t *testing.T) {
	t.Helper()
	material := make([]byte, 32)
	_, err := rand.Read(material)
	harness.Must(t, err)
	patch, err := json.Marshal(map[string]any{"data": map[string][]byte{time.Now().UTC().Format("20060102T150405Z"): material}})
	harness.Must(t, err)
	_, err = cluster.Client.CoreV1().Secrets(harness.OwnNamespace).Patch(t.Context(), "configstamp-key", types.MergePatchType, patch, metav1.PatchOptions{})
	harness.Must(t, err)
	time.Sleep(15 * time.Second) // the grace, and some: by then every process knows it
}

// wantNoTrace checks that nothing of ours is left in the cluster but a Namespace and the
// definition of ConfigRollouts, which Helm never deletes, and events, which the API server does.
func wantNoTrace(t *testing.T) {
	t.Helper()
	cluster.Kubectl(t, "delete", "crd", "configrollouts.configstamp.dev", "--ignore-not-found")
	kinds := strings.Fields(cluster.Kubectl(t, "api-resources", "--verbs=list", "-o", "name"))
	var left []string
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Second) {
		left = nil
		for line := range strings.Lines(cluster.Kubectl(t, "get", strings.Join(kinds, ","), "--all-namespaces", "--ignore-not-found",
			"-o", `jsonpath={range .items[*]}{.kind} {.metadata.namespace}/{.metadata.name}{"\n"}{end}`)) {
			kind, name, _ := strings.Cut(strings.TrimSpace(line), " ")
			switch {
			case !strings.Contains(name, harness.OwnNamespace), kind == "Event", line == "Namespace /configstamp\n",
				kind == "ConfigMap" && strings.HasSuffix(name, "/kube-root-ca.crt"), kind == "ServiceAccount" && strings.HasSuffix(name, "/default"):
			default:
				left = append(left, kind+" "+name)
			}
		}
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("left after uninstalling:\n%s", strings.Join(left, "\n"))
		}
	}
}
