package neighbours

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"github.com/configstamp/configstamp/e2e/harness"
)

// argo is Argo CD as its manifests install it: the application controller, the repository server
// and a cache, but as processes of this machine. The health check of deploy/gitops is in its settings.
type argo struct {
	programs []*program

	mu   sync.Mutex
	seen map[string][]argoMoment // by the name of an Application
	news map[string]string       // the newest state as JSON, to be told in a failure
}

// argoMoment is what an Application says of itself from a time on.
type argoMoment struct {
	At                     time.Time
	Sync, Health, Revision string
	OutOfSync              []string          // kind/name, as kubectl takes it
	Ill                    map[string]string // why a resource is not Healthy, by kind/name
	Operation, Phase       string            // when the newest sync began, and what has become of it
}

// argoResync is how often an Application is compared though nobody asks for it.
const argoResync = 15 * time.Second

const argoInstallation = `
apiVersion: v1
kind: Namespace
metadata: {name: argocd}
---
apiVersion: v1
kind: Secret
metadata: {name: argocd-secret, namespace: argocd, labels: {app.kubernetes.io/name: argocd-secret, app.kubernetes.io/part-of: argocd}}
stringData: {server.secretkey: a-key-of-the-test}
`

// argoProject is made when Argo CD runs, as its API server does, which does not run here.
const argoProject = `
apiVersion: argoproj.io/v1alpha1
kind: AppProject
metadata: {name: default, namespace: argocd}
spec: {sourceRepos: ["*"], destinations: [{namespace: "*", server: "*"}], clusterResourceWhitelist: [{group: "*", kind: "*"}]}
`

func startArgo(t *testing.T) *argo {
	t.Helper()
	const project = "github.com/argoproj/argo-cd/v3"
	n := neighbour("argocd")
	binary, manifests := n.build(t, project+"/cmd"), filepath.Join(n.files(t, project), "manifests")
	install(t, filepath.Join(manifests, "crds", "application-crd.yaml"), filepath.Join(manifests, "crds", "applicationset-crd.yaml"),
		filepath.Join(manifests, "crds", "appproject-crd.yaml"))
	argoApply(t, argoInstallation)
	kubectl(t, "apply", "-n", "argocd", "-f", filepath.Join(manifests, "base", "config", "argocd-cm.yaml"))
	kubectl(t, "patch", "-n", "argocd", "configmap", "argocd-cm", "--patch-file", "../../deploy/gitops/argocd-health.yaml")

	dir := t.TempDir()
	store := filepath.Join(dir, "redis")
	if out, err := exec.CommandContext(t.Context(), "go", "-C", n.module(t), "build", "-o", store, "./redis").CombinedOutput(); err != nil {
		t.Fatalf("building the cache: %v\n%s", err, out)
	}
	verify := filepath.Join(n.files(t, project), "hack", "git-verify-wrapper.sh") // a program of its image
	text, err := os.ReadFile(verify)
	harness.Must(t, err)
	harness.Must(t, os.WriteFile(filepath.Join(dir, filepath.Base(verify)), text, 0o700))
	redis, repositories := argoAddress(t), argoAddress(t)
	a := &argo{seen: map[string][]argoMoment{}, news: map[string]string{}}
	start := func(binary string, environment []string, args ...string) *program {
		p := launch(t, binary, environment, args...)
		a.programs = append(a.programs, p)
		return p
	}
	start(store, nil, redis).wait(t, "redis: ready")

	environment := []string{
		"ARGOCD_TLS_DATA_PATH=" + dir, "ARGOCD_SSH_DATA_PATH=" + dir, "ARGOCD_GPG_ENABLED=false", "TMPDIR=" + dir,
		"ARGOCD_ASK_PASS_SOCK=" + filepath.Join(dir, "ask"), "ARGOCD_FAKE_IN_CLUSTER=true",
		"PATH=" + dir + string(os.PathListSeparator) + os.Getenv("PATH"),
	}
	as := func(name string) []string { return append(slices.Clone(environment), "ARGOCD_BINARY_NAME="+name) }
	_, port, _ := net.SplitHostPort(repositories)
	_, metrics, _ := net.SplitHostPort(argoAddress(t))
	start(binary, as("argocd-repo-server"), "--address=127.0.0.1", "--port="+port, "--metrics-address=127.0.0.1", "--metrics-port="+metrics,
		"--redis="+redis).wait(t, "argocd-repo-server is listening")
	_, metrics, _ = net.SplitHostPort(argoAddress(t))
	a.watch(t)
	start(binary, as("argocd-application-controller"), "--namespace=argocd", "--redis="+redis, "--repo-server="+repositories, "--metrics-port="+metrics,
		fmt.Sprintf("--app-resync=%d", int(argoResync.Seconds())), "--app-resync-jitter=0", "--persist-resource-health").wait(t, "Configmap/secret informer synced")
	argoApply(t, argoProject)
	return a
}

// argoAddress is one on the loopback on which nobody listens yet.
func argoAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	harness.Must(t, err)
	defer listener.Close()
	return listener.Addr().String()
}

// argoApply applies a manifest as the administrator.
func argoApply(t *testing.T, manifest string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "manifest.yaml")
	harness.Must(t, os.WriteFile(file, []byte(manifest), 0o600))
	kubectl(t, "apply", "-f", file)
}

// watch writes down what Applications say, from the beginning.
func (a *argo) watch(t *testing.T) {
	t.Helper()
	client, err := dynamic.NewForConfig(run.Config)
	harness.Must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, "argocd", nil)
	applications := schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "applications"}
	_, err = factory.ForResource(applications).Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    a.see,
		UpdateFunc: func(_, now any) { a.see(now) },
	})
	harness.Must(t, err)
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
}

func (a *argo) see(found any) {
	o, ok := found.(*unstructured.Unstructured)
	if !ok {
		return
	}
	text := func(path ...string) string {
		value, _, _ := unstructured.NestedString(o.Object, append([]string{"status"}, path...)...)
		return value
	}
	now := argoMoment{
		At: time.Now(), Sync: text("sync", "status"), Health: text("health", "status"), Revision: text("sync", "revision"),
		Operation: text("operationState", "startedAt"), Phase: text("operationState", "phase"), Ill: map[string]string{},
	}
	resources, _, _ := unstructured.NestedSlice(o.Object, "status", "resources")
	for _, each := range resources {
		resource, _ := each.(map[string]any)
		kind, _, _ := unstructured.NestedString(resource, "kind")
		name, _, _ := unstructured.NestedString(resource, "name")
		status, _, _ := unstructured.NestedString(resource, "status")
		health, _, _ := unstructured.NestedString(resource, "health", "status")
		message, _, _ := unstructured.NestedString(resource, "health", "message")
		object := strings.ToLower(kind) + "/" + name
		if status == "OutOfSync" {
			now.OutOfSync = append(now.OutOfSync, object)
		}
		if health != "" && health != "Healthy" {
			now.Ill[object] = health + ": " + message
		}
	}
	encoded, _ := o.MarshalJSON()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.seen[o.GetName()] = append(a.seen[o.GetName()], now)
	a.news[o.GetName()] = string(encoded)
}

// argoApplication is an Application, and who watches over it.
type argoApplication struct {
	*argo
	t    *testing.T
	name string
}

// argoOptions are how an Application is to be compared and synced.
type argoOptions struct {
	compare string   // the annotation compare-options
	sync    []string // its syncOptions
	more    string   // more of its syncPolicy
}

// keep makes an Application for what is in a repository: synced by itself, with prune and selfHeal.
func (a *argo) keep(t *testing.T, namespace, url string, options argoOptions) *argoApplication {
	t.Helper()
	argoApply(t, fmt.Sprintf(`
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: %[1]s, namespace: argocd, annotations: {argocd.argoproj.io/compare-options: %[3]q}}
spec:
  project: default
  source: {repoURL: %[2]q, path: ., targetRevision: main}
  destination: {server: "https://kubernetes.default.svc", namespace: %[1]s}
  syncPolicy: {automated: {prune: true, selfHeal: true}, syncOptions: [%[4]s]%[5]s}
`, namespace, url, options.compare, strings.Join(options.sync, ", "), options.more))
	return &argoApplication{argo: a, t: t, name: namespace}
}

// argoGoes takes an Application and its namespace away at the end, unless the cluster is kept.
func argoGoes(t *testing.T, namespace string) {
	t.Cleanup(func() {
		kubectl(t, "delete", "application", "-n", "argocd", namespace)
		if os.Getenv(harness.EnvKeep) == "" {
			kubectl(t, "delete", "namespace", namespace, "--wait=false")
		}
	})
}

// moments are those since one.
func (a *argoApplication) moments(since int) []argoMoment {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.seen[a.name][min(since, len(a.seen[a.name])):])
}

func (a *argoApplication) now() argoMoment {
	all := a.moments(0)
	if len(all) == 0 {
		return argoMoment{}
	}
	return all[len(all)-1]
}

// refresh asks for a comparison, as a Git host's notice of a push does.
func (a *argoApplication) refresh() {
	a.t.Helper()
	kubectl(a.t, "annotate", "-n", "argocd", "--overwrite", "application", a.name, "argocd.argoproj.io/refresh=normal")
}

// wantSynced waits until the Application is at a commit.
func (a *argoApplication) wantSynced(revision string) {
	a.t.Helper()
	eventually(a.t, "Application "+a.name+" is synced", 3*time.Minute, func() error {
		a.wantAlive()
		now := a.now()
		switch {
		case now.Sync != "Synced" || now.Revision != revision:
			return fmt.Errorf("it is %s at %s, want %s; out of sync: %v", now.Sync, now.Revision, revision, now.OutOfSync)
		case now.Phase != "Succeeded":
			return errors.New("its last sync is " + now.Phase)
		}
		return nil
	}, a.report)
}

// wantAlive ends a test that waits for a program that is gone.
func (a *argoApplication) wantAlive() {
	a.t.Helper()
	for _, p := range a.programs {
		select {
		case <-p.done:
			a.t.Fatalf("%s has ended\n%s", p.log, p.tail())
		default:
		}
	}
}

// wantHealth waits for a state of health.
func (a *argoApplication) wantHealth(want string, bound time.Duration) {
	a.t.Helper()
	eventually(a.t, "Application "+a.name+" is "+want, bound, func() error {
		if now := a.now(); now.Health != want {
			return fmt.Errorf("it is %s: %v", now.Health, now.Ill)
		}
		return nil
	}, a.report)
}

// report is what a person wants to see of a failure.
func (a *argoApplication) report() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var text strings.Builder
	fmt.Fprintln(&text, a.news[a.name])
	for _, m := range a.seen[a.name] {
		fmt.Fprintf(&text, "%s %s %s at %.7s, sync of %s %s, out of sync %v, ill %v\n", m.At.Format(time.TimeOnly), m.Sync, m.Health, m.Revision, m.Operation, m.Phase, m.OutOfSync, m.Ill)
	}
	return text.String()
}

// argoSyncs are the syncs that some moments tell of, by when they began.
func argoSyncs(moments []argoMoment) map[string]bool {
	began := map[string]bool{}
	for _, m := range moments {
		if m.Operation != "" {
			began[m.Operation] = true
		}
	}
	return began
}
