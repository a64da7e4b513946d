package answer_test

import (
	"strings"
	"testing"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/answer"
	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/seen"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

func now() time.Time { return time.Date(2026, 11, 22, 3, 0, 0, 0, time.UTC) }

var web = checksum.Source{Kind: checksum.ConfigMap, Name: "web"}

const webStamp = "configmap.configstamp.dev/web"

// value is a recorded value of a content, under a key, for a selection.
func value(key, selection, content string) string {
	return "v1:" + strings.Repeat(key, 8) + ":" + selection + ":" + strings.Repeat(content, 32)
}

// fleet is one Deployment that uses configmap/web, in an opted-in namespace.
func fleet(t *testing.T, annotations string) (*seen.Fleet, *seen.Workload) {
	t.Helper()
	kind := workload.Builtin()[0]
	object, err := kind.Decode([]byte(`{"metadata":{"name":"app","namespace":"shop","uid":"u","annotations":{` + annotations + `}},
		"spec":{"template":{"metadata":{"annotations":{"` + webStamp + `":"` + value("a", "all", "1") + `"}},"spec":{"containers":[{"name":"c","envFrom":[{"configMapRef":{"name":"web"}}]}]}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	w := &seen.Workload{Ref: workload.Ref{Kind: kind, Namespace: "shop", Name: "app"}, Object: object, Created: now().Add(-time.Hour * 24)}
	if w.References, err = object.References(); err != nil {
		t.Fatal(err)
	}
	w.Status.Phase = workload.RolledOut
	return &seen.Fleet{
		Settings:   &seen.Settings{Installation: "configstamp", Policy: checksum.DefaultPolicy(), Kinds: workload.Builtin()},
		Namespaces: map[string]seen.Namespace{"shop": {Namespace: checksum.Namespace{OptedIn: true}, Known: true}},
		Workloads:  []*seen.Workload{w}, Outcomes: map[workload.Ref]seen.Outcome{},
		Sources: map[rollout.SourceRef]*seen.Source{{Namespace: "shop", Source: web}: {Namespace: "shop", Source: web, Looked: true, Exists: true,
			Writers: []seen.Write{{Manager: "kubectl-edit", At: now().Add(-10 * time.Minute), Content: true}}}},
	}, w
}

func TestServed(t *testing.T) {
	for name, one := range map[string]struct {
		label     string
		namespace seen.Namespace
		listed    []string
		want      seen.Standing
	}{
		"by the Namespace":         {namespace: seen.Namespace{Known: true, Namespace: checksum.Namespace{OptedIn: true}}, want: seen.Served},
		"no label":                 {namespace: seen.Namespace{Known: true}, want: seen.NotServed},
		"nobody knows":             {want: seen.MaybeServed},
		"its own label":            {label: "enabled", want: seen.Served},
		"its own no":               {label: "disabled", want: seen.NotServed},
		"a list of namespaces":     {listed: []string{"shop"}, want: seen.Served},
		"a list without it":        {label: "enabled", listed: []string{"other"}, want: seen.NotServed},
		"a value that is no value": {label: "true", namespace: seen.Namespace{Known: true}, want: seen.NotServed},
	} {
		t.Run(name, func(t *testing.T) {
			f, w := fleet(t, "")
			w.Object.Labels = map[string]string{checksum.InjectLabel: one.label}
			f.Settings.Namespaces, f.Namespaces["shop"] = one.listed, one.namespace
			got, why := f.Serves(w)
			if got != one.want {
				t.Errorf("it is %s, want %s", got, one.want)
			}
			if words, _ := answer.NotServedWords(f.Settings, one.namespace, w, why); one.label == "true" && !strings.Contains(words, `inject="true" is not "enabled"`) {
				t.Errorf("the words are %q", words)
			}
		})
	}
}
