package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// checksums runs the command in a folder of its own, with a kubeconfig that cannot be
// read: no cluster is asked.
func checksums(t *testing.T, stdin string, args ...string) (out, errOut string, code int) {
	t.Helper()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	var stdout, stderr bytes.Buffer
	root := rootCommand(newPlugin(genericiooptions.IOStreams{In: strings.NewReader(stdin), Out: &stdout, ErrOut: &stderr}, time.Now))
	root.SetArgs(append([]string{"checksum"}, args...))
	err := root.ExecuteContext(t.Context())
	if err != nil {
		stderr.WriteString("error: " + err.Error() + "\n")
	}
	return stdout.String(), stderr.String(), codeOf(err)
}

// folder holds some files, by name and text, and is the working directory of the test.
func folder(t *testing.T, files ...string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for i := 0; i < len(files); i += 2 {
		if err := os.MkdirAll(filepath.Dir(files[i]), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(files[i], []byte(files[i+1]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

var hexDigits = regexp.MustCompile(`"[0-9a-f]{64}"`)

const (
	webManifest = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  template:
    spec:
      containers:
      - name: web
        envFrom:
        - configMapRef: {name: web-message}
        - secretRef: {name: db}
`
	messageManifest = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"web-message","namespace":"shop"},"data":{"MESSAGE":"hello"}}`
	secretManifest  = "apiVersion: v1\nkind: Secret\nmetadata: {name: db}\nstringData: {password: hunter2}\n"
	hexKey          = "2b7e151628aed2a6abf7158809cf4f3c2b7e151628aed2a6abf7158809cf4f3c\n"
)

func TestChecksum(t *testing.T) {
	folder(t, "in/web.yaml", webManifest, "in/below/message.json", messageManifest, "in/secret.yml", secretManifest, "in/README.md", "{{", "key", hexKey)
	out, errOut, code := checksums(t, "", "-f", "in", "-R", "-n", "shop", "--key-file", "key")
	want := "---\n" + messageManifest + "\n---\n" + secretManifest + "---\n" + strings.Replace(webManifest, "    spec:\n      con",
		"    metadata:\n      annotations:\n"+
			"        checksum/configmap.web-message: \"caf\"\n        checksum/secret.db: \"caf\"\n    spec:\n      con", 1)
	if got := hexDigits.ReplaceAllString(out, `"caf"`); got != want || errOut != "" || code != 0 {
		t.Errorf("code %d, stderr %q, output\n%s, want\n%s", code, errOut, got, want)
	}
}

func TestChecksum_OfStandardInput(t *testing.T) {
	folder(t)
	out, errOut, code := checksums(t, webManifest, "-f", "-")
	want := "Warning: stdin:1: Deployment web uses sources that are not in these files: configmap/web-message, secret/db; no checksum is written for them, and a change of them rolls out nothing\n"
	if out != webManifest || errOut != want || code != 0 {
		t.Errorf("code %d, stderr %q, output\n%s", code, errOut, out)
	}
}

// The Secret has no checksum, and people read why and what to do.
func TestChecksum_OfASecretWithoutAKey(t *testing.T) {
	folder(t, "web.yaml", webManifest+"---\n"+strings.Replace(messageManifest, `,"namespace":"shop"`, "", 1)+"\n---\n"+secretManifest)
	out, errOut, code := checksums(t, "", "-f", "web.yaml")
	if strings.Contains(out, "checksum/secret") || !strings.Contains(out, "checksum/configmap.web-message") || code != 0 {
		t.Errorf("code %d, output\n%s", code, out)
	}
	want := "Warning: no checksum is written for secret/db: a plain one lets everybody who can read the workload try out guesses of the Secret; " +
		"pass --key-file with a key (openssl rand -hex 32 > key), or --allow-guessable where nothing in them can be guessed\n"
	if errOut != want {
		t.Errorf("stderr %q, want %q", errOut, want)
	}
	out, errOut, code = checksums(t, "", "-f", "web.yaml", "--allow-guessable")
	if !strings.Contains(out, "checksum/secret.db") || errOut != "" || code != 0 {
		t.Errorf("code %d, stderr %q, output\n%s", code, errOut, out)
	}
}

func TestChecksum_CustomKinds(t *testing.T) {
	folder(t, "web.yaml", strings.NewReplacer("apps/v1", "example.com/v1", "Deployment", "Proxy").Replace(webManifest)+"---\n"+strings.Replace(messageManifest, `,"namespace":"shop"`, "", 1))
	for _, test := range []struct {
		flag string
		want int
	}{{"example.com/v1/proxies=spec.template", 1}, {"example.com/v1/others=spec.template", 0}} {
		out, _, code := checksums(t, "", "-f", "web.yaml", "--workload", test.flag)
		if got := strings.Count(out, "checksum/configmap"); got != test.want || code != 0 {
			t.Errorf("%s: code %d, output\n%s", test.flag, code, out)
		}
	}
}

// Nothing is printed with an error, which says what to do.
func TestChecksum_Errors(t *testing.T) {
	folder(t, "web.yaml", webManifest, "bad.yaml", "a: b: c\n", "worse.yaml", "a: 1\nb: c: d\n", "dir/in/web.yaml", webManifest, "short", "0123456789abcdef0123456789abcde\n")
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"no file":            {nil, "error: say which manifests: -f FILE, -f DIRECTORY, or -f - for standard input\n"},
		"no such file":       {[]string{"-f", "none.yaml"}, "error: reading manifests: stat none.yaml: no such file or directory\n"},
		"an empty directory": {[]string{"-f", "dir"}, "error: -f dir: it holds no file that ends in .json, .yaml or .yml; -R looks into the directories below too\n"},
		"an address":         {[]string{"-f", "https://example.com/web.yaml"}, "error: -f https://example.com/web.yaml: this command fetches nothing: pipe the output of curl into -f -\n"},
		"stdin twice":        {[]string{"-f", "-", "-f", "-"}, "error: -f -: standard input can be read only once\n"},
		"two bad files": {[]string{"-f", "web.yaml,bad.yaml,worse.yaml"}, "error: bad.yaml:1: it is not YAML: mapping values are not allowed in this context\n" +
			"worse.yaml:2: it is not YAML: mapping values are not allowed in this context\n"},
		"a short key":        {[]string{"-f", "web.yaml", "--key-file", "short"}, "error: reading --key-file short: the key has 31 bytes, want 32 or more, at random: openssl rand -hex 32 > short\n"},
		"no key":             {[]string{"-f", "web.yaml", "--key-file", "none"}, "error: reading --key-file: open none: no such file or directory\n"},
		"a key and no need":  {[]string{"-f", "web.yaml", "--key-file", "short", "--allow-guessable"}, "error: if any flags in the group [key-file allow-guessable] are set none of the others can be; [allow-guessable key-file] were all set\n"},
		"a kind that is not": {[]string{"-f", "web.yaml", "--workload", "proxies"}, "error: reading workload kind \"proxies\": want group/version/resource=path.to.template[,rollout=Condition], such as argoproj.io/v1alpha1/rollouts=spec.template,rollout=Progressing\n"},
	} {
		t.Run(name, func(t *testing.T) {
			out, errOut, code := checksums(t, "", test.args...)
			if out != "" || errOut != test.want || code != 1 {
				t.Errorf("code %d, output %q, stderr\n%s, want\n%s", code, out, errOut, test.want)
			}
		})
	}
}
