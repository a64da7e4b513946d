package neighbours

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configstamp/configstamp/e2e/harness"
)

// kyverno is Kyverno: its admission controller changes what people write, and its background
// controller what is there.
const kyverno = neighbour("kyverno")

// mutated is a namespace whose Deployments Kyverno changes: its policy has all containers read the
// ConfigMap "shared".
type mutated struct {
	*harness.Space
	readers
	began time.Time
}

// TestKyverno: templates that name a ConfigMap because a policy says so.
func TestKyverno(t *testing.T) {
	startKyverno(t)
	t.Run("AskedAfterUs", fromTheBeginning) // its configuration is kyverno-resource-mutating-webhook-cfg
	t.Run("AskedBeforeUs", func(t *testing.T) {
		askUsLast(t)
		fromTheBeginning(t)
	})
	t.Run("APolicyThatComesLater", comesLater)
	t.Run("ExistingOnesAreMutated", existing)
}

// fromTheBeginning has a policy, and then what it changes.
func fromTheBeginning(t *testing.T) {
	n := newMutated(t)
	n.policy(t, addsShared)
	n.create(t)
	n.wantShared(t)
	n.wantRead(t, "first", "first")
	n.wantStill(t, time.Minute)
	n.wantWrites(t, 0, 0, 0)

	for i, edit := range []func(word string){
		func(word string) { n.Edit("configmap/settings", "setting", word) },
		func(word string) { n.Edit("configmap/shared", "level", word) },
		func(word string) {
			n.Edit("configmap/settings", "setting", word)
			n.Edit("configmap/shared", "level", word)
		},
	} {
		before := n.counts()
		edit(fmt.Sprint("edit-", i))
		n.wantRolled(t, before, 4*time.Minute, once)
		n.wantServing(t, 2*time.Minute)
		n.wantTruth(t)
		n.wantShared(t)
	}
	n.wantRead(t, "edit-2", "edit-2")
	n.wantWrites(t, 3, 0, 0)
}

// comesLater has workloads, and then a policy. configstamp's own account may change nothing but its
// annotations, so no edit of a ConfigMap brings the policy's change along: people decide when.
func comesLater(t *testing.T) {
	n := newMutated(t)
	n.create(t)
	n.policy(t, addsShared)
	n.wantStill(t, 30*time.Second)
	n.wantWrites(t, 0, 0, 0)

	before := n.counts()
	n.Edit("configmap/settings", "setting", "second")
	for _, r := range n.readers {
		n.WantNote(r.workload(), "RolloutBlocked")
	}
	n.wantRolled(t, before, time.Minute, func(reader) int { return 0 })
	n.Kubectl("rollout", "restart", "deployment")
	n.wantRolled(t, before, 4*time.Minute, once)
	n.wantServing(t, 2*time.Minute)
	n.wantTruth(t)
	n.wantShared(t)
	n.wantRead(t, "second", "first")

	before = n.counts()
	n.Edit("configmap/shared", "level", "second")
	n.wantRolled(t, before, 4*time.Minute, once)
	n.wantShared(t)
	n.wantRead(t, "second", "second")
	n.wantStill(t, 30*time.Second)
	// What is refused is tried again by and by: after 0.4 s, 0.8 s and so on until the restart.
	n.wantWrites(t, 1, 0, 5)
}

// existing has a policy that writes into templates what a ConfigMap says, whenever it is edited.
func existing(t *testing.T) {
	const account = "kyverno-background-controller" // its own, as in Kyverno's chart: what it writes is no trigger
	startKyvernos(t, "background-controller", account, kyvernoAccount(t, account), "--enableReporting=")
	n := newMutated(t)
	n.create(t)
	n.policy(t, marksExisting)
	const edits = 3
	for i := range edits {
		before, word := n.counts(), fmt.Sprint("edit-", i)
		n.Edit("configmap/settings", "setting", word)
		n.wantRolled(t, before, 4*time.Minute, once)
		n.wantServing(t, 2*time.Minute)
		n.wantTruth(t)
		for _, r := range n.readers {
			if mark := harness.TemplateAnnotations(n.Get(r.workload()))["example.com/setting"]; mark != word {
				t.Errorf("Kyverno has marked %s with %q, want %q", r, mark, word)
			}
		}
	}
	n.wantStill(t, 30*time.Second)
	n.wantWrites(t, edits, edits, edits)
}

// addsShared has the containers of Deployments read one ConfigMap more.
const addsShared = `
  - name: adds-shared
    match: {any: [{resources: {kinds: [Deployment], namespaces: [%[1]s], operations: [CREATE, UPDATE]}}]}
    mutate:
      patchStrategicMerge:
        spec: {template: {spec: {containers: [{(name): "*", envFrom: [{prefix: SHARED_, configMapRef: {name: shared}}]}]}}}
`

// marksExisting is a policy that the background controller follows.
const marksExisting = `
  - name: marks-existing
    match: {any: [{resources: {kinds: [ConfigMap], names: [settings], namespaces: [%[1]s], operations: [UPDATE]}}]}
    mutate:
      mutateExistingOnPolicyUpdate: false
      targets: [{apiVersion: apps/v1, kind: Deployment, namespace: %[1]s}]
      patchStrategicMerge:
        spec: {template: {metadata: {annotations: {example.com/setting: "{{ request.object.data.setting }}"}}}}
`

// policy makes a policy of one rule, for one namespace, and waits until it is at work.
func (n *mutated) policy(t *testing.T, rule string) {
	t.Helper()
	kubectlInput(t, fmt.Sprintf(`
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: %[1]s}
spec:
  background: false
  rules:`+rule, n.Namespace), "create", "-f", "-")
	t.Cleanup(func() { kubectl(t, "delete", "clusterpolicy", n.Namespace) })
	kubectl(t, "wait", "--for=condition=Ready", "--timeout=60s", "clusterpolicy/"+n.Namespace)
	time.Sleep(3 * time.Second) // the API server knows of the webhook
	n.began = time.Now()
}

// newMutated makes a namespace with what its Deployments will read.
func newMutated(t *testing.T) *mutated {
	t.Helper()
	n := &mutated{Space: run.Space(t), began: time.Now()}
	n.WaitServiceAccount()
	// Several edits within ten minutes are what this test is made of.
	n.SetPolicy("namespace", map[string]string{"min-interval": "1ms"})
	n.Set("configmap/settings", "setting", "first")
	n.Set("configmap/shared", "level", "first")
	time.Sleep(2 * time.Second) // the namespace's settings are known to all processes
	for i, name := range []string{"web", "worker", "idle-a", "idle-b"} {
		r := reader{space: n.Space, name: name, source: "configmap/settings", key: "setting", manner: "lenient", replicas: 1}
		if i > 1 {
			r.replicas = 0
		}
		n.readers = append(n.readers, r)
	}
	return n
}

// create makes the Deployments, and waits until all is as it is to be.
func (n *mutated) create(t *testing.T) {
	t.Helper()
	for _, r := range n.readers {
		r.create()
	}
	n.wantServing(t, 4*time.Minute)
	for _, r := range n.readers {
		n.Settled(r.workload())
	}
	n.wantTruth(t)
	n.began = time.Now()
}

// wantShared checks the stamps of what Kyverno alone has put into the templates.
func (n *mutated) wantShared(t *testing.T) {
	t.Helper()
	want := n.Digest("configmap/shared")
	for _, r := range n.readers {
		if stamp := n.Stamp(r.workload(), "configmap/shared"); stamp != want {
			t.Errorf("%s has the stamp %q of what Kyverno added, want %q", r, stamp, want)
		}
	}
}

// wantRead waits until all containers have read both ConfigMaps.
func (n *mutated) wantRead(t *testing.T, setting, level string) {
	t.Helper()
	for _, r := range n.real() {
		r.wantRead(t, map[string]string{"app/SETTING": setting, "app/SHARED_level": level})
	}
}

// wantWrites checks how often configstamp and Kyverno wrote each Deployment, and how often one was
// refused at it: so often at most.
func (n *mutated) wantWrites(t *testing.T, ours, theirs, refused int) {
	t.Helper()
	here := func(q request) bool { return q.Namespace == n.Namespace }
	for agent, most := range map[string]int{controller: ours, "kyverno": 0, "background-controller": theirs} {
		made, _ := written(t, n.began, agent, "deployments", func(q request) bool { return here(q) && q.Code < 400 })
		refusals, _ := written(t, n.began, agent, "deployments", func(q request) bool { return here(q) && q.Code >= 400 })
		t.Logf("%s wrote Deployments: %s; was refused: %s", agent, spread(made), spread(refusals))
		for object, times := range made {
			if times > most {
				t.Errorf("%s wrote %s %d times, want at most %d", agent, object, times, most)
			}
		}
		for object, times := range refusals {
			if times > refused {
				t.Errorf("%s was refused %d times at %s, want at most %d", agent, times, object, refused)
			}
		}
	}
	t.Log("writes of everybody:\n" + strings.Join(tally(requests(t, n.began, func(q request) bool { return here(q) && q.writes() })), "\n"))
}

// askUsLast gives our webhook configuration a name that sorts after Kyverno's, to the end of the test.
func askUsLast(t *testing.T) {
	t.Helper()
	all := run.Client.AdmissionregistrationV1().MutatingWebhookConfigurations()
	rename := func(from, to string) {
		ours, err := all.Get(context.Background(), from, metav1.GetOptions{})
		harness.Must(t, err)
		ours.ObjectMeta = metav1.ObjectMeta{Name: to, Labels: ours.Labels, Annotations: ours.Annotations}
		_, err = all.Create(context.Background(), ours, metav1.CreateOptions{})
		harness.Must(t, err)
		harness.Must(t, all.Delete(context.Background(), from, metav1.DeleteOptions{}))
	}
	rename("configstamp", "z-configstamp")
	t.Cleanup(func() { rename("z-configstamp", "configstamp") })
	time.Sleep(2 * time.Second) // the API server knows
}

// startKyverno starts the admission controller outside the cluster.
func startKyverno(t *testing.T) {
	t.Helper()
	files := kyverno.files(t, "github.com/kyverno/kyverno")
	definitions, err := filepath.Glob(filepath.Join(files, "config", "crds", "*", "*.yaml"))
	harness.Must(t, err)
	install(t, definitions...)
	kubectlInput(t, kyvernoNamespace, "apply", "--server-side", "-f", "-")
	t.Cleanup(func() { // it leaves its webhooks when it ends outside a cluster
		kubectl(t, "delete", "mutatingwebhookconfigurations,validatingwebhookconfigurations", "--selector=webhook.kyverno.io/managed-by=kyverno")
		kubectl(t, "delete", "namespace", "kyverno", "--wait=false")
	})
	port := strconv.Itoa(freePort(t))
	startKyvernos(t, "kyverno", "kyverno-admission-controller", run.Kubeconfig(),
		"--serverIP="+net.JoinHostPort(run.HostAddress(), port),
		"--webhookServerHost="+run.HostAddress(), "--webhookServerPort="+port,
		"--caSecretName=kyverno-svc.kyverno.svc.kyverno-tls-ca", "--tlsSecretName=kyverno-svc.kyverno.svc.kyverno-tls-pair",
		"--backgroundServiceAccountName=system:serviceaccount:kyverno:kyverno-background-controller", "--admissionReports=false")
	eventually(t, "waiting for Kyverno's webhooks", time.Minute, func() error {
		configuration, err := run.Client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(), "kyverno-policy-validating-webhook-cfg", metav1.GetOptions{})
		if err == nil && len(configuration.Webhooks) == 0 {
			err = errors.New("it has none yet")
		}
		return err
	})
}

// startKyvernos starts one of Kyverno's programs.
func startKyvernos(t *testing.T, program, name, kubeconfig string, args ...string) {
	t.Helper()
	host, port, err := net.SplitHostPort(freeAddress(t)) // they end when another serves metrics at theirs
	harness.Must(t, err)
	kyverno.start(t, "github.com/kyverno/kyverno/cmd/"+program,
		[]string{
			"KYVERNO_NAMESPACE=kyverno", "KYVERNO_SERVICEACCOUNT_NAME=" + name, "KYVERNO_DEPLOYMENT=" + name, "KYVERNO_POD_NAME=" + name,
			"INIT_CONFIG=kyverno", "METRICS_CONFIG=kyverno-metrics",
		},
		append(args, "--kubeconfig="+kubeconfig, "--disableLogColor=true",
			"--metricsHost="+host, "--metricsPort="+port, "--controllerRuntimeMetricsAddress=0")...)
}

// kyvernoAccount writes a kubeconfig of a service account of Kyverno's.
func kyvernoAccount(t *testing.T, name string) string {
	t.Helper()
	hour := int64(time.Hour / time.Second)
	token, err := run.Client.CoreV1().ServiceAccounts("kyverno").CreateToken(t.Context(), name,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &hour}}, metav1.CreateOptions{})
	harness.Must(t, err)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	harness.Must(t, harness.WriteKubeconfig(file, run.Config.Host, run.Config.CAData, token.Status.Token))
	return file
}

// kyvernoNamespace is what Kyverno's chart makes for it, in short. What is in the namespaces of the
// cluster itself is left alone.
const kyvernoNamespace = `
apiVersion: v1
kind: Namespace
metadata: {name: kyverno}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: kyverno, namespace: kyverno}
data:
  resourceFilters: '[Event,*,*] [*/*,kube-system,*] [*/*,kube-public,*] [*/*,kube-node-lease,*] [*/*,kyverno,*] [ReplicaSet,*,*]'
  webhooks: '{"namespaceSelector":{"matchExpressions":[{"key":"kubernetes.io/metadata.name","operator":"NotIn","values":["kyverno","kube-system"]}]}}'
---
apiVersion: v1
kind: ConfigMap
metadata: {name: kyverno-metrics, namespace: kyverno}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: kyverno-background-controller, namespace: kyverno}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: kyverno-background-controller}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, name: kyverno-background-controller, namespace: kyverno}]
`
