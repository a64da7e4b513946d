package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configstamp/configstamp/e2e/fakecluster"
)

func TestUsers(t *testing.T) {
	server := fakecluster.New(t, "testdata/shop.yaml")
	server.Now = atThree()
	golden(t, "users", server, "users", "configmap/payment-api-config")
	golden(t, "users-keys", server, "users", "cm", "payment-api-config", "--key", "LOG_LEVEL", "--key", "other")
	for args, want := range map[string]string{
		"cm/payment-api-config -o name":                      "deployment.apps/payment-api deployment.apps/payment-worker cronjob.batch/report",
		"cm/payment-api-config -o name --key other":          "deployment.apps/payment-api deployment.apps/payment-worker cronjob.batch/report",
		"cm/other -o name":                                   "deployment.apps/unrelated",
		"cm/other -o jsonpath={.items[*].kind}":              "Deployment",
		"secret/db -o jsonpath={.kind}/{.items[*].kind}":     "List/",
		"cm/payment-api-config -o jsonpath={.items[0].kind}": "Deployment",
	} {
		server.Apply(t, "apiVersion: v1\nkind: Secret\nmetadata: {name: db, namespace: shop}\n")
		out, _, code := run(t, server, append([]string{"users"}, strings.Fields(args)...)...)
		if got := strings.Join(strings.Fields(out), " "); got != want || code != 0 {
			t.Errorf("%s: exit code %d, %q, want %q", args, code, got, want)
		}
	}
}

// usedBy is a Deployment: its metadata, replicas and template.
const usedBy = `apiVersion: apps/v1
kind: Deployment
metadata: {name: app, namespace: shop, %s}
spec:
  replicas: %d
  template:
    metadata: {annotations: {%s}}
    spec: {%s}
`

// webStamped is a stamp of the source in usedIn.
const webStamped = `configmap.configstamp.dev/web: "v1:aaaaaaaa:all:11111111111111111111111111111111"`

// usedIn is a namespace with a source, and no workload.
func usedIn(t *testing.T, namespace, source, settings string) *fakecluster.Server {
	t.Helper()
	server := fakecluster.New(t)
	server.Now = atThree()
	server.Apply(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop, "+namespace+"}\n---\n"+
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: configstamp-settings, namespace: configstamp}\ndata: {settle: 2s, "+settings+"}\n---\n"+
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web, namespace: shop, "+source+"}\ndata: {a: never-shown, b: never-shown}\n")
	return server
}

// Each effect of an edit of the key a, and each reason for it.
func TestUsers_Effects(t *testing.T) {
	const (
		enabled = "labels: {configstamp.dev/inject: enabled}"
		envFrom = "containers: [{name: c, envFrom: [{configMapRef: {name: web}}]}]"
		mounted = "volumes: [{name: v, configMap: {name: web}}], containers: [{name: c, volumeMounts: [{name: v, mountPath: /v}]}]"
		envOfB  = "containers: [{name: c, env: [{name: B, valueFrom: {configMapKeyRef: {name: web, key: b}}}]}]"
	)
	set := func(name, value string) string {
		return "annotations: {configstamp.dev/" + name + ": \"" + value + "\"}"
	}
	for name, c := range map[string]struct {
		namespace, source, settings string
		metadata, pod               string
		gone, unstamped             bool // it has no replicas, no stamps
		want                        string
	}{
		"restarts":            {want: "restarts envFrom: all keys"},
		"env":                 {pod: envOfB + ", initContainers: [{name: i, env: [{name: A, valueFrom: {configMapKeyRef: {name: web, key: a}}}]}]", want: "restarts env: a, b"},
		"file":                {pod: mounted, want: "restarts file: all keys"},
		"init file":           {pod: strings.Replace(mounted, "containers", "containers: [{name: d}], initContainers", 1), want: "restarts init file: all keys"},
		"subPath":             {pod: strings.Replace(mounted, "/v}", "/v, subPath: a}", 1), want: "restarts subPath: a"},
		"also":                {pod: "containers: [{name: c}]", metadata: set("also", "configmap/web"), want: "restarts also: all keys"},
		"no replicas":         {gone: true, want: "later pods envFrom: all keys it has no replicas"},
		"paused":              {metadata: set("pause", "true"), want: "restarts envFrom: all keys held by configstamp.dev/pause"},
		"paused Namespace":    {namespace: enabled + ", " + set("pause", "2026-11-22T06:00:00Z"), want: "held by configstamp.dev/pause (on the Namespace) until 2026-11-22T06:00:00Z"},
		"unreadable":          {metadata: set("pause", "perhaps"), want: "restarts envFrom: all keys held until this can be read: "},
		"opted out":           {metadata: "labels: {configstamp.dev/inject: disabled}", want: "nothing envFrom: all keys its label configstamp.dev/inject is \"disabled\""},
		"excluded":            {settings: "excluded-namespaces: shop", want: "nothing envFrom: all keys its namespace is never served"},
		"no label, a stamp":   {namespace: "labels: {}", want: "not known envFrom: all keys no label opts it in, but it has checksums"},
		"no label, no stamp":  {namespace: "labels: {}", unstamped: true, want: "nothing envFrom: all keys neither it nor its Namespace has the label"},
		"all opted in":        {namespace: "labels: {}", settings: "opt-in: all", unstamped: true, want: "restarts envFrom: all keys"},
		"all, not this one":   {namespace: "labels: {configstamp.dev/inject: disabled}", settings: "opt-in: all", want: "nothing envFrom: all keys the label configstamp.dev/inject of its Namespace is disabled"},
		"all, a misspelt one": {namespace: "labels: {configstamp.dev/inject: disable}", settings: "opt-in: all", want: "restarts envFrom: all keys"},
		"ignored":             {metadata: set("ignore", "configmap/w*"), want: "nothing envFrom: all keys configstamp.dev/only, ignore or ignore-keys leaves it out"},
		"ignored everywhere":  {namespace: enabled + ", " + set("ignore", "configmap/web"), want: "configstamp.dev/only, ignore or ignore-keys leaves it out"},
		"made by a platform":  {settings: "ignore-sources: configmap/web", want: "nothing envFrom: all keys configstamp.dev/only, ignore or ignore-keys leaves it out"},
		"another only":        {metadata: set("only", "secret/db"), want: "nothing envFrom: all keys configstamp.dev/only, ignore or ignore-keys leaves it out"},
		"ignored source":      {source: set("ignore", "true"), want: "nothing envFrom: all keys configstamp.dev/only, ignore or ignore-keys leaves it out"},
		"ignored key":         {source: set("ignore-keys", "a*"), want: "nothing envFrom: all keys configstamp.dev/only, ignore or ignore-keys leaves it out"},
		"another ignored key": {source: set("ignore-keys", "b*"), want: "restarts"},
		"refreshed files":     {pod: mounted, metadata: set("restart-on", "startup"), want: "nothing file: all keys configstamp.dev/restart-on leaves out the way in which it uses them"},
		"of the node":         {pod: "volumes: [{name: v, configMap: {name: web}}], containers: [{name: c}]", want: "nothing volume: all keys no container mounts its volume"},
		"observe":             {metadata: set("mode", "observe"), want: "nothing envFrom: all keys its mode is observe"},
		"another key":         {pod: envOfB, want: "nothing env: b it uses none of the keys that change"},
		"Reloader's name":     {settings: "dialects: reloader", metadata: "annotations: {configmap.reloader.stakater.com/reload: web}", pod: "containers: [{name: c}]", want: "restarts also: all keys"},
		"Reloader's":          {settings: "dialects: reloader", metadata: `annotations: {secret.reloader.stakater.com/reload: db}`, want: "nothing envFrom: all keys configstamp.dev/only, ignore or ignore-keys leaves it out"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.namespace == "" {
				c.namespace = enabled
			}
			if c.pod == "" {
				c.pod = envFrom
			}
			server := usedIn(t, c.namespace, c.source, c.settings)
			replicas, stamp := 1, webStamped
			if c.gone {
				replicas = 0
			}
			if c.unstamped {
				stamp = ""
			}
			server.Apply(t, fmt.Sprintf(usedBy, c.metadata, replicas, stamp, c.pod))
			out, errOut, code := run(t, server, "users", "cm/web", "--key", "a")
			if !strings.Contains(strings.Join(strings.Fields(out), " "), c.want) || errOut != "" || code != 0 {
				t.Errorf("exit code %d, want %q in\n%s%s", code, c.want, out, errOut)
			}
		})
	}
}

func TestUsers_OfSecrets(t *testing.T) {
	server := usedIn(t, "labels: {configstamp.dev/inject: enabled}", "", "")
	server.Apply(t, fmt.Sprintf(usedBy, "", 1, webStamped, "imagePullSecrets: [{name: db}], containers: [{name: c}]"))
	server.Apply(t, "apiVersion: v1\nkind: Secret\nmetadata: {name: db, namespace: shop}\ndata: {a: bmV2ZXItc2hvd24=}\n")
	server.Intercept = func(resource, accept string) {
		if resource == "secrets" && !strings.Contains(accept, "as=PartialObjectMetadata") {
			t.Errorf("it reads Secrets as %s", accept)
		}
	}
	for settings, want := range map[string]string{
		"sources: \"configmaps,secrets\"": "nothing imagePullSecrets: all keys configstamp.dev/restart-on leaves out the way in which it uses them",
		"sources: configmaps":             "nothing imagePullSecrets: all keys no secret counts in this cluster",
	} {
		server.Apply(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: configstamp-settings, namespace: configstamp}\ndata: {"+settings+"}\n")
		out, errOut, code := run(t, server, "users", "secret/db")
		if !strings.Contains(strings.Join(strings.Fields(out), " "), want) || errOut != "" || code != 0 {
			t.Errorf("exit code %d, want %q in\n%s%s", code, want, out, errOut)
		}
	}
}

// A source that does not exist is an error, unless a workload uses it. So is a workload that cannot be read.
func TestUsers_Wrong(t *testing.T) {
	server := fakecluster.New(t, "testdata/shop.yaml")
	server.Now = atThree()
	odd := strings.Replace(fmt.Sprintf(usedBy, "", 1, webStamped, "containers: 7"), "name: app", "name: odd", 1)
	for _, c := range []struct {
		args, apply, out, errOut string
		code                     int
	}{
		{args: "cm/payment-config", errOut: "not found in namespace shop; did you mean payment-api-config?", code: 1},
		{args: "cm/other", out: "An edit restarts 1 of 1 workload.", errOut: "Warning: configmap/other does not exist in namespace shop"},
		{args: "deployment/payment-api", errOut: `"deployment" is not a kind of source`, code: 1},
		{args: "cm/configstamp-settings -n configstamp", out: "No workload in namespace configstamp uses configmap/configstamp-settings."},
		{args: "cm/payment-api-config", apply: odd, out: "An edit restarts 2 of 9 workloads.", errOut: "reading deployment/odd in namespace shop", code: 1},
	} {
		if c.apply != "" {
			server.Apply(t, c.apply)
		}
		out, errOut, code := run(t, server, append([]string{"users"}, strings.Fields(c.args)...)...)
		if !strings.Contains(out, c.out) || !strings.Contains(errOut, c.errOut) || code != c.code {
			t.Errorf("users %s: exit code %d\n%s%s", c.args, code, out, errOut)
		}
	}
}

// The role view is enough. What it may not read is said.
func TestUsers_WithFewRights(t *testing.T) {
	server := fakecluster.New(t, "testdata/shop.yaml")
	server.Now = atThree()
	server.Apply(t, fmt.Sprintf(usedBy, "", 1, webStamped, "containers: [{name: c, envFrom: [{secretRef: {name: db}}]}]"))
	view := func(verb, resource, _ string) bool {
		return verb != "get" && verb != "list" && verb != "watch" || resource == "secrets" || resource == "cronjobs"
	}
	server.Forbid = view
	out, errOut, code := run(t, server, "users", "secret/db")
	if !strings.Contains(out, "deployment/app  restarts  envFrom: all keys") || code != 0 {
		t.Errorf("exit code %d\n%s", code, out)
	}
	for _, want := range []string{"the settings on secret/db, and whether it exists: ", "cronjobs is forbidden"} {
		if !strings.Contains(strings.Join(strings.Fields(errOut), " "), want) {
			t.Errorf("it does not say %q:\n%s", want, errOut)
		}
	}
	for _, request := range server.Requests() {
		if !strings.HasPrefix(request, "GET ") {
			t.Errorf("it sends %s", request)
		}
	}
	server.Forbid = func(verb, resource, namespace string) bool {
		return view(verb, resource, namespace) || resource == "namespaces"
	}
	if out, _, _ = run(t, server, "users", "cm/payment-api-config"); !strings.Contains(out, "not known  envFrom: all keys; file: app.conf\n  its Namespace cannot be read") || !strings.Contains(out, "0 of 8 workloads; for 2 this is not known.") {
		t.Errorf("without the Namespace it says\n%s", out)
	}
	if out, _, code = run(t, server, "users", "cm/payment-api-config", "-o", "name"); code != 0 || strings.Count(out, "\n") != 2 { // not the CronJob
		t.Errorf("without the Namespace: exit code %d\n%s", code, out)
	}
}

// tried is a shop whose API server warns of an edit of configmap/web. edits are the objects as they would be.
func tried(t *testing.T) (server *fakecluster.Server, edits *[]string) {
	t.Helper()
	server = usedIn(t, "labels: {configstamp.dev/inject: enabled}", "labels: {team: shop}, annotations: {note: kept}", "")
	server.Apply(t, "apiVersion: v1\nkind: Secret\nmetadata: {name: db, namespace: shop}\ndata: {a: bmV2ZXItc2hvd24=, b: bmV2ZXItc2hvd24=}\n")
	edits = &[]string{}
	server.Admit = func(_ string, object *unstructured.Unstructured) ([]string, error) {
		*edits = append(*edits, fmt.Sprintln(object.GetName(), object.Object["data"], object.Object["stringData"], object.GetLabels(), object.GetAnnotations()))
		switch object.GetName() {
		case "web":
			return []string{"configstamp: this change rolls out deployment/payment-api, deployment/legacy-app and 2 more, one first", "of another webhook"}, nil
		case "refused":
			return nil, errors.New("denied by a policy")
		}
		return nil, nil
	}
	return server, edits
}

// -f sends dry runs alone, of what would be if the manifests were applied, and prints no content. What fails does not stop
// the others.
func TestUsers_DryRun(t *testing.T) {
	server, edits := tried(t)
	golden(t, "users-files", server, "users", "-R", "-f", "testdata/users")
	slices.Sort(*edits)
	const want = `brand-new map[a:never-shown] <nil> map[] map[]
db map[] map[a:never-shown-a] map[] map[]
refused <nil> <nil> map[] map[]
web map[b:never-shown-b c:never-shown-c] <nil> map[team:shop] map[added:x note:kept]
`
	if got := strings.Join(*edits, ""); got != want {
		t.Errorf("it tries\n%swant\n%s", got, want)
	}
	if writes := server.Writes(); len(writes) > 0 {
		t.Errorf("it writes %v", writes)
	}
	file, err := os.Open("testdata/users/deep/new.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	stdin := os.Stdin
	os.Stdin = file // the builder reads no other
	defer func() { os.Stdin = stdin }()
	if out, errOut, code := run(t, server, "users", "-f", "-"); !strings.Contains(out, "configmap/brand-new in namespace shop, which does not exist yet") || errOut != "" || code != 0 {
		t.Errorf("of stdin: exit code %d\n%s%s", code, out, errOut)
	}
}

func TestUsers_DryRunWrong(t *testing.T) {
	for _, c := range []struct{ args, forbidden, errOut string }{
		{"-f testdata/users/edits.yaml", "patch", "dry run: configmap/web in namespace shop: you have no right to change it: "},
		{"-f testdata/users/edits.yaml", "patch", "(this needs no right to write: kubectl configstamp users configmap/web -n shop)"},
		{"-f testdata/users/edits.yaml", "get", "dry run: configmap/web in namespace shop: configmaps is forbidden"},
		{"-f testdata/users/deep", "create", "dry run: configmap/brand-new in namespace shop: configmaps is forbidden"},
		{"-f testdata/users/bad.yaml", "", `unable to decode "testdata/users/bad.yaml": Object 'Kind' is missing`},
		{"-f testdata/users/nowhere.yaml", "", `the path "testdata/users/nowhere.yaml" does not exist`},
		{"-f testdata/users/edits.yaml cm/web", "", "leave out the source, --key and --output"},
		{"-f testdata/users/edits.yaml --key a", "", "leave out the source, --key and --output"},
		{"-f testdata/users/edits.yaml -o name", "", "leave out the source, --key and --output"},
	} {
		server, _ := tried(t)
		server.Forbid = func(verb, _, namespace string) bool { return verb == c.forbidden && namespace == "shop" }
		out, errOut, code := run(t, server, append([]string{"users"}, strings.Fields(c.args)...)...)
		if !strings.Contains(errOut, c.errOut) || code != 1 || strings.Contains(out+errOut, "never-shown") {
			t.Errorf("%s: exit code %d\n%s%s", c.args, code, out, errOut)
		}
	}
}
