package main

import (
	"bufio"
	"bytes"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cert-manager/cert-manager/pkg/util/pki"
	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/configstamp/configstamp/internal/cache/objects"
)

// asMain in the environment makes a process of this test the real program.
const asMain = "CONFIGSTAMP_TEST_AS_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(asMain) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// start runs configstamp, as a process, on a cluster that is away, until the test
// ends. It gives the addresses of what is served, by what it says it serves.
func start(t *testing.T, want int, args ...string) map[string]string {
	t.Helper()
	command := exec.Command(os.Args[0], append(args, "--kubeconfig="+nowhere(t), "--log-format=json")...)
	command.Env = append(os.Environ(), asMain+"=1")
	output, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	stop := time.AfterFunc(30*time.Second, func() { _ = command.Process.Kill() })
	t.Cleanup(func() {
		stop.Stop()
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	addresses := map[string]string{}
	lines := bufio.NewScanner(output)
	for len(addresses) < want && lines.Scan() {
		var line struct{ Msg, Address string }
		if json.Unmarshal(lines.Bytes(), &line) != nil {
			t.Fatalf("no line of a log in JSON: %s", lines.Text())
		}
		if what, serves := strings.CutPrefix(line.Msg, "Serving "); serves && line.Address != "" {
			addresses[what] = line.Address
		}
	}
	if len(addresses) < want {
		t.Fatalf("configstamp %s serves %v, want %d addresses", strings.Join(args, " "), addresses, want)
	}
	go func() { _, _ = io.Copy(io.Discard, output) }()
	return addresses
}

// nowhere is a kubeconfig of a cluster that does not answer.
func nowhere(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	write(t, file, []byte(`{apiVersion: v1, kind: Config, current-context: nowhere,
		clusters: [{name: nowhere, cluster: {server: "http://`+listener.Addr().String()+`"}}],
		contexts: [{name: nowhere, context: {cluster: nowhere}}]}`))
	return file
}

// certificateFiles makes a certificate for 127.0.0.1, and gives the flags that
// name it, and who trusts it.
func certificateFiles(t *testing.T) (flags []string, trust *x509.CertPool) {
	t.Helper()
	key, err := pki.GenerateECPrivateKey(pki.ECCurve256)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	encoded, certificate, err := pki.SignCertificate(template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := pki.EncodePKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	write(t, certFile, encoded)
	write(t, keyFile, private)
	trust = x509.NewCertPool()
	trust.AddCert(certificate)
	return []string{"--tls-cert-file=" + certFile, "--tls-key-file=" + keyFile}, trust
}

func write(t *testing.T, file string, text []byte) {
	t.Helper()
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// secretReader is a process whose API server answers every request with a Secret, and
// its client's read of that.
func secretReader(t *testing.T, answer http.HandlerFunc) (read func(klog.Logger)) {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	write(t, file, []byte(`{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: "`+server.URL+`"}}], contexts: [{name: c, context: {cluster: c}}]}`))
	p, err := newProcess(&common{kubeconfig: file}, "webhook")
	if err != nil {
		t.Fatal(err)
	}
	secrets, err := objects.New[*corev1.Secret](p.config, corev1.SchemeGroupVersion, corev1.AddToScheme, "secrets", "configstamp")
	if err != nil {
		t.Fatal(err)
	}
	return func(logger klog.Logger) {
		t.Helper()
		klog.SetLoggerWithOptions(logger, klog.ContextualLogger(true))
		defer klog.ClearLogger()
		if _, err := secrets.Get(klog.NewContext(t.Context(), logger), "configstamp-key"); err != nil {
			t.Fatal(err)
		}
	}
}

// What somebody's webhook has to say to a request of ours, such as that for the Secret
// of the keys, is not logged: it may quote what was sent.
func TestWarningsOfOthersAreNotLogged(t *testing.T) {
	read := secretReader(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Warning", `299 - "the key is S3CR3T"`)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "configstamp-key"}}`)
	})
	var log bytes.Buffer
	read(logr.FromSlogHandler(slog.NewJSONHandler(&log, nil)))
	if strings.Contains(log.String(), "S3CR3T") {
		t.Errorf("the log says %s", log.String())
	}
}

// client-go logs the bodies of answers at some verbosity, and no flag allows that one.
func TestNoVerbosityLogsBodies(t *testing.T) {
	read := secretReader(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "configstamp-key"}, "stringData": {"key": "S3CR3T"}}`)
	})
	for verbosity, logged := range map[int]bool{maxVerbosity: false, maxVerbosity + 1: true} {
		var log bytes.Buffer
		read(logr.FromSlogHandler(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.Level(-verbosity)})))
		if strings.Contains(log.String(), "S3CR3T") != logged {
			t.Errorf("at verbosity %d the log says %q; want a body: %t", verbosity, log.String(), logged)
		}
		command := webhookCommand()
		command.SetArgs([]string{fmt.Sprintf("-v=%d", verbosity)})
		command.SilenceUsage, command.SilenceErrors = true, true
		if err := command.Execute(); err == nil || strings.Contains(err.Error(), "-v=") != logged {
			t.Errorf("-v=%d: %v", verbosity, err)
		}
	}
}

// What each process does when it is told to stop ends before the kubelet kills it.
func TestWhatIsSentAtTheEndFitsTheGracePeriod(t *testing.T) {
	manifest, err := os.ReadFile(filepath.Join("..", "..", "deploy", "install.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var grace time.Duration
	for _, text := range bytes.Split(manifest, []byte("\n---\n")) {
		if bytes.Contains(text, []byte("\nkind: Deployment\n")) {
			var deployment appsv1.Deployment
			read(t, text, &deployment)
			grace = time.Duration(*deployment.Spec.Template.Spec.TerminationGracePeriodSeconds) * time.Second
		}
	}
	linger, err := webhookCommand().Flags().GetDuration("shutdown-linger")
	if err != nil {
		t.Fatal(err)
	}
	if all := linger + drain + webhookTellsWithin; all >= grace {
		t.Errorf("the webhook may take %s, and has %s", all, grace)
	}
	const givesBackTheLease = 10 * time.Second // controller: RenewDeadline
	if all := givesBackTheLease + controllerTellsWithin; all >= grace {
		t.Errorf("the controller may take %s, and has %s", all, grace)
	}
}
