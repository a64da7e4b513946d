package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

// paths are all that may be asked for anywhere.
func paths() []string {
	return []string{"/metrics", "/healthz", "/readyz", "/debug/pprof/"}
}

func TestWhatIsServedWhere(t *testing.T) {
	certificate, trust := certificateFiles(t)
	probes := map[string]int{"/healthz": 200, "/readyz": 503} // the cluster is away
	metrics := map[string]int{"/metrics": 200}
	both := maps.Clone(probes)
	maps.Copy(both, metrics)
	for sentence, test := range map[string]struct {
		flags []string
		want  map[string]map[string]int // status by path, by door; any other path: 404
		tls   bool
	}{
		"metrics and probes at one address": {nil, map[string]map[string]int{"metrics and probes": both}, false},
		"probes at one of their own": {[]string{"--health-address=127.0.0.1:0"},
			map[string]map[string]int{"metrics": metrics, "probes": probes}, false},
		"metrics by TLS": {[]string{"--health-address=127.0.0.1:0", "--metrics-tls"},
			map[string]map[string]int{"metrics": metrics, "probes": probes}, true},
		"everything": {[]string{"--health-address=127.0.0.1:0", "--metrics-tls", "--tls-min-version=1.2"},
			map[string]map[string]int{"metrics": metrics, "probes": probes}, true},
	} {
		for _, name := range []string{"webhook", "controller"} {
			t.Run(sentence+", "+name, func(t *testing.T) {
				t.Parallel()
				doors := len(test.want)
				args := append([]string{name, "--metrics-address=127.0.0.1:0"}, test.flags...)
				if name == "webhook" {
					args = append(args, "--address=127.0.0.1:0")
					doors++
				}
				if name == "webhook" || test.tls {
					args = append(args, certificate...)
				}
				served := start(t, doors, args...)
				if admissions := served["admissions"]; admissions != "" {
					if got, _ := get(t, trust, "https://"+admissions+"/other"); got != http.StatusNotFound {
						t.Errorf("admissions: /other answers with %d", got)
					}
				}
				delete(served, "admissions")
				if got, want := slices.Sorted(maps.Keys(served)), slices.Sorted(maps.Keys(test.want)); !slices.Equal(got, want) {
					t.Fatalf("serves %v, want %v", got, want)
				}
				for what, address := range served {
					scheme := "http://"
					if what == "metrics" && test.tls {
						scheme = "https://"
					}
					for _, path := range paths() {
						want := test.want[what][path]
						if want == 0 {
							want = http.StatusNotFound
						}
						if got, _ := get(t, trust, scheme+address+path); got != want {
							t.Errorf("%s: %s answers with %d, want %d", what, path, got, want)
						}
					}
				}
				if test.tls {
					least := uint16(tls.VersionTLS13)
					if slices.Contains(test.flags, "--tls-min-version=1.2") {
						least = tls.VersionTLS12
					}
					wantTLS(t, trust, served["metrics"], least)
				}
			})
		}
	}
}

// Where the API server calls, nobody without a certificate is answered; probes and metrics are
// elsewhere, and ask for none.
func TestClientCertificatesAreDemandedWhereTheAPIServerCalls(t *testing.T) {
	t.Parallel()
	certificate, trust := certificateFiles(t)
	file := strings.TrimPrefix(certificate[0], "--tls-cert-file=")
	args := append([]string{"--metrics-address=127.0.0.1:0", "--health-address=127.0.0.1:0", "--metrics-tls", "--client-ca-file=" + file, "--client-names=kube-apiserver"}, certificate...)
	for door, process := range map[string][]string{
		"admissions":      {"webhook", "--address=127.0.0.1:0"},
		"impact warnings": {"controller", "--impact-address=127.0.0.1:0"},
	} {
		served := start(t, 3, append(process, args...)...)
		for address, want := range map[string]int{"https://" + served["metrics"] + "/metrics": 200, "http://" + served["probes"] + "/healthz": 200} {
			if got, _ := get(t, trust, address); got != want {
				t.Errorf("%s: %s answers with %d", door, address, got)
			}
		}
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trust}}, Timeout: 10 * time.Second}
		response, err := client.Get("https://" + served[door])
		if alert := new(net.OpError); !errors.As(err, &alert) || alert.Op != "remote error" {
			t.Errorf("%s: want a TLS alert, got %v, error %v", door, response, err)
		}
	}
}

// get waits for an answer of what may be about to serve; a certificate is read after
// the port is open.
func get(t *testing.T, trust *x509.CertPool, url string) (status int, body string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trust}, DisableKeepAlives: true}, Timeout: 10 * time.Second}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		response, err := client.Get(url)
		if err != nil {
			if time.Now().After(deadline) {
				t.Fatal(err)
			}
			continue
		}
		text, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, string(text)
	}
}

// wantTLS checks that an address speaks TLS from a version on, and nothing else.
func wantTLS(t *testing.T, trust *x509.CertPool, address string, least uint16) {
	t.Helper()
	if status, body := get(t, trust, "http://"+address+"/metrics"); status != http.StatusBadRequest || strings.Contains(body, "configstamp_") {
		t.Errorf("without TLS it answers with %d: %.100s", status, body)
	}
	for _, version := range []uint16{tls.VersionTLS11, tls.VersionTLS12, tls.VersionTLS13} {
		connection, err := tls.Dial("tcp", address, &tls.Config{RootCAs: trust, MinVersion: version, MaxVersion: version})
		if (err == nil) != (version >= least) {
			t.Errorf("%s and newer, asked by %s: %v", tls.VersionName(least), tls.VersionName(version), err)
		}
		if err == nil {
			connection.Close()
		}
	}
}

// A process is to be started anew when that helps: when a watch hangs, or its work
// does. That the API server is away is no reason.
func TestHealthIsToldByWhatHangs(t *testing.T) {
	now := time.Now()
	ago := func(age time.Duration) func() time.Time {
		return func() time.Time { return now.Add(-age) }
	}
	never := func() time.Time { return time.Time{} }
	for sentence, test := range map[string]struct {
		started time.Duration
		sign    func() time.Time
		work    error
		want    int
	}{
		"all is well":                            {time.Hour, ago(time.Minute), nil, http.StatusOK},
		"it has just started":                    {time.Minute, never, nil, http.StatusOK},
		"it has never asked anything":            {time.Hour, never, nil, http.StatusServiceUnavailable},
		"a watch is asked for, and told nothing": {time.Hour, ago(14 * time.Minute), nil, http.StatusOK},
		"a watch hangs":                          {time.Hour, ago(16 * time.Minute), nil, http.StatusServiceUnavailable},
		"a worker hangs":                         {time.Hour, ago(time.Minute), errors.New("a worker hangs"), http.StatusServiceUnavailable},
	} {
		t.Run(sentence, func(t *testing.T) {
			p := &process{started: now.Add(-test.started), signs: map[string]func() time.Time{"sources": test.sign, "others": ago(0)}}
			w := httptest.NewRecorder()
			p.health(func(time.Time) error { return test.work })(w, httptest.NewRequest(http.MethodGet, "/healthz", nil))
			if w.Code != test.want {
				t.Errorf("status %d, want %d: %s", w.Code, test.want, w.Body)
			}
		})
	}
}
