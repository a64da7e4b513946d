package neighbours

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configstamp/configstamp/e2e/harness"
)

// trustManager is cert-manager's trust-manager. It writes a bundle of certificates, as one ConfigMap,
// into many namespaces.
const trustManager = neighbour("trust")

const (
	// bundleSpaces are the namespaces that a Bundle is written to, bundleReal those of them that have
	// containers that read it.
	bundleSpaces, bundleReal = 200, 15
	// bundleLabel is how Bundles find the namespaces of one test.
	bundleLabel = "neighbours.example/bundle"
)

// bundles is a Bundle, its copies and those who read them.
type bundles struct {
	name string
	// target is the spec's.
	target string
	spaces []*harness.Space
	readers
	// edits and mends are how often the source was edited, and how often a copy was deleted or
	// edited by hand, so that trust-manager has to write it again.
	edits int
	mends map[string]int // by namespace
	began time.Time
}

// TestTrustManager: an edit of one Bundle changes two hundred ConfigMaps. That is one change.
func TestTrustManager(t *testing.T) {
	startTrustManager(t)
	good, bad := certificate(t, false), certificate(t, true)
	b := newBundle(t, "trusted", bundleSpaces, bundleReal, `{configMap: {key: ca.pem}}`, good)
	heap, resident := memory(t)
	t.Logf("memory of the leader with %d copies, before edits: heap %.1f MiB, resident %.0f MiB (with the race detector)", bundleSpaces, heap, resident)

	t.Run("NothingRollsByItself", func(t *testing.T) {
		begin := time.Now()
		b.wantStill(t, 20*time.Second)
		b.wantWrites(t, begin, 0)
	})
	t.Run("AnEditRollsEachOnce", func(t *testing.T) {
		begin, before := time.Now(), b.counts()
		good = certificate(t, false)
		b.edit(t, good)
		b.wantRolled(t, before, 6*time.Minute, once)
		b.wantSteps(t, begin)
		b.wantWrites(t, begin, 1)
		b.wantTruth(t)
	})
	t.Run("EditsOneAfterTheOther", func(t *testing.T) {
		begin, before := time.Now(), b.counts()
		for range 4 { // trust-manager writes some copies a second: they have the first content, and then the last
			good = certificate(t, false)
			b.edit(t, good)
			time.Sleep(400 * time.Millisecond)
		}
		b.wantCopies(t, good)
		b.wantInTheEnd(t, 6*time.Minute)
		b.wantServing(t, time.Minute)
		b.wantNoMoreThanWritten(t, begin, before)
		b.wantWrites(t, begin, 4)
		b.wantTruth(t)
	})
	t.Run("ABadBundleHalts", func(t *testing.T) { b.haltsAt(t, bad, good, 2) })
	t.Run("CopiesThatPeopleDeleteAndEdit", func(t *testing.T) {
		begin := time.Now()
		for _, space := range b.spaces[:10] {
			b.deleteCopy(t, space)
		}
		for _, space := range b.spaces[5:15] {
			b.editCopy(t, space)
		}
		b.wantStill(t, 20*time.Second)
		b.wantWrites(t, begin, 0)
		b.wantTruth(t)
	})
	t.Run("WhilePeopleDoBoth", func(t *testing.T) {
		begin, edits, until := time.Now(), 0, time.Now().Add(*long)
		for time.Now().Before(until) {
			before := b.counts()
			b.edit(t, certificate(t, false))
			edits++
			for i := range 12 { // while it rolls
				time.Sleep(time.Second)
				b.deleteCopy(t, b.spaces[(7*i+edits)%len(b.spaces)])
			}
			b.wantRolled(t, before, 6*time.Minute, once)
			b.wantServing(t, time.Minute)
			b.wantTruth(t)
		}
		b.wantWrites(t, begin, edits)
	})

	heapNow, residentNow := memory(t)
	t.Logf("memory of the leader after %d edits of %d copies: heap %.1f MiB (before %.1f), resident %.0f MiB (before %.0f)",
		b.edits, bundleSpaces, heapNow, heap, residentNow, resident)
	if heapNow > 2*heap+10 {
		t.Errorf("the heap of the leader grew from %.1f to %.1f MiB", heap, heapNow)
	}
	t.Log("writes of everybody:\n" + strings.Join(tally(requests(t, b.began, request.writes)), "\n"))

	// With this the same edit is two hundred changes, so that the checks of steps above are seen to fail.
	t.Run("EachOfItsOwn", func(t *testing.T) {
		each := options()
		each.Controller = append(each.Controller, "--replicated=each")
		harness.Must(t, run.Product.Restart(t.Context(), each))
		t.Cleanup(func() { harness.Must(t, run.Product.Restart(bounded(), options())) })
		begin, before := time.Now(), b.counts()
		b.edit(t, certificate(t, false))
		b.wantRolled(t, before, 6*time.Minute, once)
		if alone := b.beganTogether(t, begin); alone == 1 {
			t.Errorf("with --replicated=each one workload went alone, as if its copies were one change")
		}
		b.wantTruth(t)
	})
}

// TestTrustManagerWithPKCS12: a store with a password holds salt, so that no two copies are equal in
// all of their keys. They are copies all the same.
func TestTrustManagerWithPKCS12(t *testing.T) {
	startTrustManager(t)
	good := certificate(t, false)
	const namespaces = 8
	b := newBundle(t, "salted", namespaces, namespaces, `{configMap: {key: ca.pem}, additionalFormats: {pkcs12: {key: ca.p12, password: changeit}}}`, good)
	stores := map[string]bool{}
	for _, space := range b.spaces {
		data, err := held(t.Context(), space.Namespace, "configmap/"+b.name)
		harness.Must(t, err)
		stores[string(data["ca.p12"])] = true
	}
	if len(stores) != namespaces {
		t.Fatalf("%d namespaces have %d different stores: this test is about such as differ", namespaces, len(stores))
	}
	t.Run("ACopyThatIsWrittenAgain", func(t *testing.T) {
		before := b.counts()
		b.deleteCopy(t, b.spaces[0])
		b.wantRolled(t, before, time.Minute, func(reader) int { return 0 }) // nobody reads the store
	})
	t.Run("AnEdit", func(t *testing.T) {
		begin, before := time.Now(), b.counts()
		good = certificate(t, false)
		b.edit(t, good)
		b.wantRolled(t, before, 4*time.Minute, once)
		b.wantSteps(t, begin)
	})
	t.Run("ABadBundleHalts", func(t *testing.T) { b.haltsAt(t, certificate(t, true), good, 2) })
}

// startTrustManager runs it with its webhook, which only looks at Bundles.
func startTrustManager(t *testing.T) {
	t.Helper()
	home := run.PlainSpace(t).Namespace
	crds := filepath.Join(trustManager.files(t, "github.com/cert-manager/trust-manager"), "deploy", "crds")
	install(t, filepath.Join(crds, "trust.cert-manager.io_bundles.yaml"), filepath.Join(crds, "trust-manager.io_clusterbundles.yaml"))
	dir := t.TempDir()
	certificate, key, err := run.Authority.Pair(time.Now().Add(24 * time.Hour))
	harness.Must(t, err)
	harness.Must(t, os.WriteFile(filepath.Join(dir, "tls.crt"), certificate, 0o600))
	harness.Must(t, os.WriteFile(filepath.Join(dir, "tls.key"), key, 0o600))
	port := freePort(t)
	p := trustManager.start(t, "github.com/cert-manager/trust-manager/cmd/trust-manager", nil,
		"--trust-namespace="+home, "--leader-elect=false", "--metrics-port=0", "--readiness-probe-port=0",
		"--webhook-host="+run.HostAddress(), fmt.Sprintf("--webhook-port=%d", port), "--webhook-certificate-dir="+dir)
	p.wait(t, "Starting workers")
	run.Install(t, fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: trust-manager}
webhooks:
- name: trust.cert-manager.io
  rules: [{apiGroups: [trust.cert-manager.io], apiVersions: [v1alpha1], operations: [CREATE, UPDATE], resources: [bundles]}]
  admissionReviewVersions: [v1]
  failurePolicy: Fail
  sideEffects: None
  clientConfig:
    url: https://%s/validate-trust-cert-manager-io-v1alpha1-bundle
    caBundle: %s
`, net.JoinHostPort(run.HostAddress(), strconv.Itoa(port)), run.Authority.Base64()))
}

// freePort is a port that nobody listens at.
func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(run.HostAddress(), "0"))
	harness.Must(t, err)
	defer listener.Close()
	address, ok := listener.Addr().(*net.TCPAddr)
	if !ok {
		t.Fatalf("%v is no address of TCP", listener.Addr())
	}
	return address.Port
}

var bundleResource = schema.GroupVersionResource{Group: "trust.cert-manager.io", Version: "v1alpha1", Resource: "bundles"}

// newBundle makes namespaces, a Bundle, and a Deployment in each that reads its copy; the first ones
// have containers.
func newBundle(t *testing.T, name string, spaces, containers int, target, content string) *bundles {
	t.Helper()
	b := &bundles{name: name, target: target, mends: map[string]int{}, began: time.Now()}
	label := fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, bundleLabel, name)
	for range spaces {
		space := run.Space(t)
		space.Patch("namespace/"+space.Namespace, label)
		// Several edits within ten minutes are what this test is made of.
		space.SetPolicy("namespace", map[string]string{"min-interval": "1ms"})
		b.spaces = append(b.spaces, space)
	}
	kubectlInput(t, b.manifest(t, content), "apply", "--server-side", "-f", "-")
	t.Cleanup(func() { // its copies go, and nobody writes them again into namespaces that end
		_ = run.Dynamic.Resource(bundleResource).Delete(bounded(), name, metav1.DeleteOptions{})
	})
	b.wantCopies(t, content)
	for i, space := range b.spaces {
		r := reader{space: space, name: "app", source: "configmap/" + name, key: "ca.pem", manner: "strict"}
		if i < containers {
			r.replicas = 1
		}
		b.readers = append(b.readers, r)
		if i%5 == 0 { // some have two, one of which is scaled to nothing
			r.name, r.replicas = "idle", 0
			b.readers = append(b.readers, r)
		}
	}
	for _, r := range b.readers {
		r.create()
	}
	b.wantServing(t, 5*time.Minute)
	for _, r := range b.readers {
		r.space.Settled(r.workload())
	}
	b.wantTruth(t)
	return b
}

// manifest is that of the Bundle.
func (b *bundles) manifest(t *testing.T, content string) string {
	t.Helper()
	text, err := json.Marshal(content)
	harness.Must(t, err)
	return fmt.Sprintf(`
apiVersion: trust.cert-manager.io/v1alpha1
kind: Bundle
metadata: {name: %s}
spec:
  sources: [{inLine: %s}]
  target: {namespaceSelector: {matchLabels: {%s: %s}}, %s
`, b.name, text, bundleLabel, b.name, strings.TrimPrefix(b.target, "{"))
}

// edit gives the Bundle another certificate.
func (b *bundles) edit(t *testing.T, content string) {
	t.Helper()
	b.edits++
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"sources": []any{map[string]any{"inLine": content}}}})
	harness.Must(t, err)
	_, err = run.Dynamic.Resource(bundleResource).Patch(t.Context(), b.name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "e2e"})
	harness.Must(t, err)
}

// wantCopies waits until each namespace has a copy of the content.
func (b *bundles) wantCopies(t *testing.T, content string) {
	t.Helper()
	eventually(t, "waiting for the copies of the Bundle", 3*time.Minute, func() error {
		for _, space := range b.spaces {
			data, err := held(t.Context(), space.Namespace, "configmap/"+b.name)
			if err != nil {
				return err
			}
			if string(data["ca.pem"]) != strings.TrimSpace(content) {
				return fmt.Errorf("%s has another content", space.Namespace)
			}
		}
		return nil
	})
}

// deleteCopy deletes a copy, and waits for the next.
func (b *bundles) deleteCopy(t *testing.T, space *harness.Space) {
	t.Helper()
	source := "configmap/" + b.name
	was := space.Get(source)
	b.mends[space.Namespace]++
	space.Delete(source)
	eventually(t, "waiting for the copy in "+space.Namespace, time.Minute, func() error { return isAgain(space, source, was) })
}

// editCopy writes into a copy what the app does not like, and waits until trust-manager has taken it
// back.
func (b *bundles) editCopy(t *testing.T, space *harness.Space) {
	t.Helper()
	source := "configmap/" + b.name
	was := space.Get(source)
	b.mends[space.Namespace]++
	space.Edit(source, "ca.pem", "bad")
	eventually(t, "waiting for the copy in "+space.Namespace, time.Minute, func() error {
		if fmt.Sprint(space.Get(source).Object["data"]) != fmt.Sprint(was.Object["data"]) {
			return errors.New("it is as somebody has edited it")
		}
		return nil
	})
}

// beganTogether is how many workloads with containers began to roll while the first one could not
// have proven itself yet.
func (b *bundles) beganTogether(t *testing.T, since time.Time) (together int) {
	t.Helper()
	var seconds []string
	rollings := b.real().rollings(t, since)
	for _, q := range rollings {
		if q.At.Sub(rollings[0].At) < soak {
			together++
		}
		seconds = append(seconds, fmt.Sprintf("%.0f", q.At.Sub(since).Seconds()))
	}
	t.Logf("workloads with containers began to roll, in seconds after the edit: %s", strings.Join(seconds, " "))
	return together
}

// wantSteps checks that one workload with containers went first, alone, and that each was sent one
// patch.
func (b *bundles) wantSteps(t *testing.T, since time.Time) {
	t.Helper()
	if together := b.beganTogether(t, since); together != 1 {
		t.Errorf("%d workloads began to roll before the first had proven itself, want 1", together)
	}
	if sent := len(b.real().rollings(t, since)); sent != len(b.real()) {
		t.Errorf("%d workloads with containers were sent %d patches that may roll", len(b.real()), sent)
	}
}

// wantWrites checks that nobody fights since a time in which the source was edited so often.
func (b *bundles) wantWrites(t *testing.T, since time.Time, edits int) {
	t.Helper()
	copies, refused := written(t, since, "trust-manager", "configmaps", func(q request) bool { return q.Name == b.name })
	t.Logf("trust-manager wrote copies: %s, %d refused", spread(copies), refused)
	for object, n := range copies {
		_, rest, _ := strings.Cut(object, "/")
		namespace, _, _ := strings.Cut(rest, "/")
		if most := edits + 2*b.mends[namespace]; n > most {
			t.Errorf("trust-manager wrote %s %d times, for %d edits, %d times mended by hand", object, n, edits, b.mends[namespace])
		}
	}
	patched, refused := written(t, since, controller, "deployments", func(request) bool { return true })
	t.Logf("configstamp wrote Deployments: %s, %d refused", spread(patched), refused)
	for object, n := range patched {
		if n > 2*edits {
			t.Errorf("configstamp wrote %s %d times, for %d edits", object, n, edits)
		}
	}
}

// wantNoMoreThanWritten checks that no workload rolled more often since before than its copy was
// written.
func (b *bundles) wantNoMoreThanWritten(t *testing.T, since time.Time, before map[string]harness.Count) {
	t.Helper()
	copies, _ := written(t, since, "trust-manager", "configmaps", func(q request) bool { return q.Name == b.name })
	now, rolled, twice := b.counts(), 0, 0
	for _, r := range b.readers {
		n := now[r.String()].Rolls - before[r.String()].Rolls
		if rolled += n; n > 1 {
			twice++
		}
		if most := copies["configmaps/"+r.space.Namespace+"/"+b.name]; n > most || n == 0 {
			t.Errorf("%s rolled %d times, and its copy was written %d times", r, n, most)
		}
	}
	t.Logf("%d workloads rolled %d times, %d of them more than once; trust-manager wrote copies: %s", len(b.readers), rolled, twice, spread(copies))
}

// haltsAt gives the Bundle a content with which the app crashes, waits until the change has halted at
// some workloads, each in another namespace, and takes it back.
func (b *bundles) haltsAt(t *testing.T, bad, good string, most int) {
	t.Helper()
	begin, before := time.Now(), b.counts()
	b.edit(t, bad)
	eventually(t, "waiting for failures", 3*time.Minute, func() error {
		if failed := b.real().rolled(before); len(failed) < most {
			return fmt.Errorf("only %v rolled", failed)
		}
		return nil
	})
	failed := b.real().rolled(before)
	for _, r := range failed {
		eventually(t, "waiting for what is said of "+r.String(), 2*time.Minute, func() error {
			if notes := r.space.Notes(r.workload()); !strings.Contains(strings.Join(notes, "\n"), "RolloutFailed") {
				return fmt.Errorf("there are only %q", notes)
			}
			return nil
		})
	}
	time.Sleep(30 * time.Second) // in which more would begin
	failed = b.real().rolled(before)
	t.Logf("%d of %d workloads with containers rolled with the bad bundle, and %d of %d without", len(failed), len(b.real()),
		len(b.rolled(before))-len(failed), len(b.readers)-len(b.real()))
	if len(failed) != most {
		t.Errorf("%v rolled with the bad bundle, want %d of them", failed, most)
	}
	b.wantServed(t)
	for _, r := range b.real() {
		if slices.Contains(failed, r) {
			continue // it may be the only one in its namespace, and said so itself
		}
		if notes := r.space.Notes(r.source); !strings.Contains(strings.Join(notes, "\n"), "ChangeHalted") {
			t.Errorf("%s: nobody was told that the change has halted: of its copy is said %q, of %s %q", r.space.Namespace, notes, r, r.space.Notes(r.workload()))
		}
	}

	touched, back := map[string]bool{}, b.counts()
	for _, r := range b.rolled(before) {
		touched[r.String()] = true
	}
	b.edit(t, good)
	b.wantCopies(t, good)
	b.wantServing(t, 3*time.Minute)
	eventually(t, "waiting until all is as before", 3*time.Minute, func() error {
		now := b.counts()
		for name := range touched {
			if now[name].Rolls == back[name].Rolls {
				return fmt.Errorf("%s has not rolled back", name)
			}
		}
		return nil
	})
	time.Sleep(settle + 3*time.Second)
	for name, now := range b.counts() {
		want := back[name].Rolls
		if touched[name] {
			want++
		}
		if now.Rolls != want {
			t.Errorf("%s rolled %d times when the bad bundle was taken back, want %d", name, now.Rolls-back[name].Rolls, want-back[name].Rolls)
		}
	}
	b.wantWrites(t, begin, 2)
	b.wantTruth(t)
}

// authorityKey signs all certificates of a run: which it is does not matter.
var authorityKey = func() *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	return key
}()

// certificate is a new one. The app crashes with a bad one: its text has the word "bad", somewhere in
// the base64, which one in five hundred has by chance.
func certificate(t *testing.T, bad bool) string {
	t.Helper()
	for range 100_000 {
		serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
		harness.Must(t, err)
		template := &x509.Certificate{
			SerialNumber: serial, Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true,
			NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), KeyUsage: x509.KeyUsageCertSign,
		}
		der, err := x509.CreateCertificate(rand.Reader, template, template, &authorityKey.PublicKey, authorityKey)
		harness.Must(t, err)
		text := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
		if strings.Contains(text, "bad") == bad {
			return text
		}
	}
	t.Fatal("no certificate came out as wanted")
	return ""
}
