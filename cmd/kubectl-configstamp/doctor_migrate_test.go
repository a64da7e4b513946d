package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/configstamp/configstamp/e2e/fakecluster"
)

type change = func(*testing.T, *fakecluster.Server)

// Reloader runs with some arguments.
func reloaderWith(args ...string) change {
	list, err := json.Marshal(args)
	if err != nil {
		panic(err)
	}
	return apply(fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: reloader-reloader, namespace: reloader}
spec:
  selector: {matchLabels: {app: reloader}}
  template:
    metadata: {labels: {app: reloader}}
    spec: {containers: [{name: reloader, image: "mirror.example.com/stakater/reloader:v1.4.21", args: %s}]}
`, list))
}

// unlabelled takes back that the namespace is opted in.
func unlabelled() change {
	return set(shop, map[string]any{}, "metadata", "labels")
}

const allOn = "--auto-reload-all=true"

func TestMigrate_Findings(t *testing.T) {
	const of = "reloader.stakater.com/"
	for name, test := range map[string]struct {
		changes []change
		// want is the code, and parts of the finding; without, there is none about a workload.
		want []string
	}{
		"neither product":            {nil, nil},
		"auto":                       {[]change{annotated(webDeploy, of+"auto", "true")}, []string{"annotations", "note", "deployment/web"}},
		"wave":                       {[]change{annotated(webDeploy, "wave.pusher.com/update-on-config-change", "true")}, []string{"annotations", "annotated for wave"}},
		"on the pod template":        {[]change{set(webDeploy, map[string]any{of + "auto": "true"}, "spec", "template", "metadata", "annotations")}, []string{"annotations", "deployment/web"}},
		"auto, false":                {[]change{reloaderWith(allOn), annotated(webDeploy, of+"auto", "false")}, []string{"opted-out", "note", "deployment/web"}},
		"auto-reload-all alone":      {[]change{reloaderWith(allOn)}, []string{"auto-reload-all", "note", "deployment/web, statefulset/db"}},
		"auto-reload-all, elsewhere": {[]change{reloaderWith(allOn, "--namespaces-to-ignore=shop,kube-public")}, nil},
		"auto-reload-all, in one":    {[]change{reloaderWith(allOn, "--namespaces", "bank,cash")}, nil},
		"auto-reload-all, excluded":  {[]change{reloaderWith(allOn), apply(strings.ReplaceAll(nightly, "shop", "kube-system"))}, []string{"differs", "warning", "cronjob/nightly", "leave it alone", "--excluded-namespaces"}},
		"opted out of configstamp":   {[]change{annotated(webDeploy, of+"auto", "true"), labelled(webDeploy, "configstamp.dev/inject", "disabled")}, []string{"differs", "warning", "leave it alone", "kubectl label deployment/web -n shop --overwrite configstamp.dev/inject=enabled"}},

		"auto-reload-all beside names":  {[]change{reloaderWith(allOn), annotated(webDeploy, "configmap."+of+"reload", "web")}, []string{"differs", "warning", "edits of secret/db restart it today", "kubectl annotate deployment/web -n shop reloader.stakater.com/auto=true"}},
		"auto-reload-all beside a kind": {[]change{reloaderWith(allOn), annotated(webDeploy, "configmap."+of+"auto", "false")}, []string{"differs", "warning", "edits of secret/db restart it today", "kubectl annotate deployment/web -n shop secret.reloader.stakater.com/auto=true secretproviderclass.reloader.stakater.com/auto=true"}},
		"a source that is ignored":      {[]change{reloaderWith(allOn), annotated(webConfig, of+"ignore", "true")}, []string{"differs", "warning", "edits of configmap/web would restart it", "kubectl annotate configmap/web -n shop configstamp.dev/ignore=true"}},
		"ignore on a workload":          {[]change{reloaderWith(allOn), annotated(webDeploy, of+"auto", "true"), annotated(webDeploy, of+"ignore", "true")}, []string{"differs", "warning", "edits of configmap/web restart it today", "kubectl edit deployment/web -n shop"}},
		"match on a workload":           {[]change{annotated(webDeploy, of+"match", "true")}, []string{"differs", "warning", "edits of secret/db would restart it"}},
		"search without a match":        {[]change{annotated(webDeploy, of+"search", "true")}, []string{"differs", "note", "choose no source"}},
		"a renamed annotation":          {[]change{reloaderWith("--auto-annotation", "corp/auto"), annotated(webDeploy, "corp/auto", "true")}, []string{"differs", "warning", "its annotation corp/auto (Reloader's --auto-annotation) is not read"}},
		"not readable":                  {[]change{annotated(webDeploy, "configmap."+of+"reload", "web-(")}, []string{"differs", "warning", `"web-(" is not a regular expression`}},
		"nothing but not readable":      {[]change{annotated(webDeploy, "deployment."+of+"pause-period", "5")}, []string{"differs", "warning", "duration"}},
		"pause-period":                  {[]change{annotated(webDeploy, of+"auto", "true"), annotated(webDeploy, "deployment."+of+"pause-period", "5m")}, []string{"differs", "note", "configstamp.dev/min-interval: 5m0s"}},
		"rollout-strategy":              {[]change{annotated(webDeploy, of+"auto", "true"), annotated(webDeploy, of+"rollout-strategy", "restart")}, []string{"differs", "note", "no effect"}},
		"a CronJob":                     {[]change{apply(nightly)}, []string{"differs", "note", "cronjob/nightly", "no Job starts"}},
		"a class, and the flag is off":  {[]change{annotated(webDeploy, "secretproviderclass."+of+"auto", "true"), set(webDeploy, []any{mountsVault}, "spec", "template", "spec", "volumes"), set(webDeploy, []any{readsVault}, "spec", "template", "spec", "containers")}, []string{"differs", "warning", "edits of secretproviderclass/vault restart it today", "--set secretProviderClasses=true"}},
		"an extra source elsewhere":     {[]change{annotated(webDeploy, "wave.pusher.com/update-on-config-change", "true"), annotated(webDeploy, "wave.pusher.com/extra-secrets", "bank/db")}, []string{"differs", "warning", `the name "bank/db"`}},

		"paused by Reloader":   {[]change{annotated(webDeploy, "deployment."+of+"paused-at", "2026-11-22T02:59:00Z")}, []string{"left-over", "warning", "kubectl rollout resume deployment/web -n shop"}},
		"no scheduler by wave": {[]change{annotated(webDeploy, "wave.pusher.com/scheduling-disabled", "own")}, []string{"left-over", "warning", `"path":"/spec/template/spec/schedulerName","value":"own"`}},
		"a finalizer of wave":  {[]change{set(dbSet, []any{"wave.pusher.com/finalizer"}, "metadata", "finalizers")}, []string{"left-over", "warning", "statefulset/db", "v0.11.0"}},

		"a flag":                     {[]change{reloaderWith(allOn)}, []string{"reloader", "note", "deployment/reloader-reloader", "--auto-reload-all=true: optIn: all"}},
		"a flag that is missed":      {[]change{reloaderWith("--webhook-url=http://x")}, []string{"reloader", "warning", "--webhook-url=http://x: none"}},
		"a flag that is off":         {[]change{reloaderWith("--reload-on-create=false")}, []string{"reloader", "note", "--reload-on-create=false: none"}},
		"a flag with its default":    {[]change{reloaderWith("--auto-annotation", of+"auto")}, []string{"reloader", "note", "--auto-annotation"}},
		"a flag of a later Reloader": {[]change{reloaderWith("--new")}, []string{"reloader", "warning", "--new=true: this version of the plugin does not know it"}},
		"no Reloader":                {nil, []string{"reloader", "note", "no Deployment of Reloader was found"}},
	} {
		t.Run(name, func(t *testing.T) {
			server := healthy(t)
			for _, change := range append([]change{unlabelled()}, test.changes...) {
				change(t, server)
			}
			out, errOut, code := run(t, server, "doctor", "--migrate", "-o", "json")
			var answer struct{ Findings []diagnosis }
			if err := json.Unmarshal([]byte(out), &answer); err != nil {
				t.Fatalf("%v: %s%s", err, out, errOut)
			}
			wrong := slices.ContainsFunc(answer.Findings, func(f diagnosis) bool { return f.Weight != isNote })
			if code != map[bool]int{false: 0, true: codeWrong}[wrong] {
				t.Errorf("exit code %d:\n%s%s", code, out, errOut)
			}
			found := func(f diagnosis) bool {
				if len(test.want) == 0 {
					return f.Check != "reloader"
				}
				line := string(f.Weight) + ": " + strings.Join(f.About, ", ") + ": " + f.Text + ": " + f.Remedy
				return f.Check == test.want[0] && !slices.ContainsFunc(test.want[1:], func(part string) bool { return !strings.Contains(line, part) })
			}
			if slices.ContainsFunc(answer.Findings, found) != (len(test.want) > 0) {
				t.Errorf("want a finding with %q in:\n%s", test.want, out)
			}
			for _, request := range server.Requests() {
				if !strings.HasPrefix(request, "GET ") {
					t.Errorf("it sent %s", request)
				}
			}
		})
	}
}

const nightly = `
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly, namespace: shop, annotations: {reloader.stakater.com/auto: "true"}}
spec: {jobTemplate: {spec: {template: {spec: {containers: [{name: a, image: "a:1", envFrom: [{configMapRef: {name: web}}]}]}}}}}
`

var (
	mountsVault = map[string]any{"name": "vault", "csi": map[string]any{"driver": "secrets-store.csi.k8s.io", "volumeAttributes": map[string]any{"secretProviderClass": "vault"}}}
	readsVault  = map[string]any{"name": "web", "image": "web:1", "volumeMounts": []any{map[string]any{"name": "vault", "mountPath": "/vault"}}}
)

// Of many workloads each is named, with one line for what they have in common. Nothing has to be installed, and rights
// in one namespace are enough for -n.
func TestMigrate_Forms(t *testing.T) {
	server := fakecluster.New(t, "testdata/doctor.yaml")
	server.Now = atThree()
	for _, change := range []change{
		unlabelled(), reloaderWith(allOn, "--reload-strategy=annotations", "--namespace-selector=team:a"),
		annotated(webDeploy, "configmap.reloader.stakater.com/reload", "web"), annotated(dbSet, "configmap.reloader.stakater.com/reload", "none"),
		apply(nightly), apply(strings.NewReplacer("nightly", "hourly", "reloader.stakater.com/auto", "configmap.reloader.stakater.com/auto", `"true"`, `"false"`, "configMapRef: {name: web}", "secretRef: {name: db}").Replace(nightly)),
	} {
		change(t, server)
	}
	for i := range 5 {
		server.Apply(t, fmt.Sprintf(strings.ReplaceAll(nightly, "nightly", "n%d"), i))
	}
	golden(t, "doctor/migrate", server, "doctor", "--migrate")
	server.Forbid = func(_, _, namespace string) bool { return namespace != "shop" }
	golden(t, "doctor/migrate-one-namespace", server, "doctor", "--migrate", "-n", "shop")
}

// The table in docs/migration.md is made of the table in the code.
func TestReferenceOfReloadersFlags(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "migration.md")
	was, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	table.WriteString("| Reloader 1.4.21 | configstamp |\n|---|---|\n")
	for _, row := range reloaderFlags() {
		var names []string
		for _, name := range row.names {
			if !strings.Contains(name, "_") {
				name = "--" + name
			}
			names = append(names, "`"+name+"`")
		}
		fmt.Fprintf(&table, "| %s | %s |\n", strings.Join(names, ", "), row.instead)
	}
	const begin, end = "<!-- flags, made by: make generate -->\n", "<!-- end of flags -->"
	before, rest, found := strings.Cut(string(was), begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s lacks the marks of the table", path)
	}
	if is := before + begin + table.String() + end + after; is == string(was) {
		return
	} else if !*update {
		t.Errorf("%s is stale: make generate writes it", path)
	} else if err := os.WriteFile(path, []byte(is), 0o600); err != nil {
		t.Fatal(err)
	}
}
