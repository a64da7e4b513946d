package e2e

import (
	"errors"
	"strings"
	"testing"

	"github.com/configstamp/configstamp/e2e/harness"
)

// What was probably meant for us, and does nothing, is told of where it stands.

// A nearMiss is typed by hand. Its writer reads of it in a warning of kubectl (on "") or
// in an event about the object.
type nearMiss struct {
	name    string
	optedIn bool
	kubectl []string // NS is the namespace
	apply   func(manifest string) string
	on      string
	says    string
}

func replaced(from, to string) func(string) string {
	return func(manifest string) string { return strings.Replace(manifest, from, to, 1) }
}

func nearMisses() []nearMiss {
	return []nearMiss{
		{name: "inject=enable on a Namespace", kubectl: []string{"label", "namespace", "NS", "configstamp.dev/inject=enable"}, on: "namespace/NS",
			says: `the label configstamp.dev/inject: "enable" opts nothing in: want enabled; did you mean enabled?`},
		{name: "inject=true on a Namespace", kubectl: []string{"label", "namespace", "NS", "configstamp.dev/inject=true"}, on: "namespace/NS",
			says: `the label configstamp.dev/inject: "true" opts nothing in: want enabled; did you mean enabled?`},
		{name: "inject=true on a workload", kubectl: []string{"label", "deployment/d", "configstamp.dev/inject=true"}, on: "deployment/d",
			says: `the label configstamp.dev/inject: "true" opts neither in nor out: want enabled or disabled; did you mean enabled?`},
		{name: "injcet", kubectl: []string{"label", "namespace", "NS", "configstamp.dev/injcet=enabled"}, on: "namespace/NS",
			says: "the label configstamp.dev/injcet is not a setting of a Namespace; it has no effect; did you mean the label configstamp.dev/inject?"},
		{name: "an annotation instead of the label", kubectl: []string{"annotate", "namespace", "NS", "configstamp.dev/inject=enabled"}, on: "namespace/NS",
			says: "the annotation configstamp.dev/inject has no effect; write it as a label"},
		{name: "the label on the pod template", apply: replaced("template:\n    metadata: {labels: {", "template:\n    metadata: {labels: {configstamp.dev/inject: enabled, "), on: "deployment/d",
			says: "the label configstamp.dev/inject has no effect on a pod template; write it on the workload's own metadata as a label"},
		{name: "the label on the pod template of what is opted in", optedIn: true, apply: replaced("template:\n    metadata: {labels: {", "template:\n    metadata: {labels: {configstamp.dev/inject: disabled, "),
			says: "the label configstamp.dev/inject has no effect on a pod template; write it on the workload's own metadata as a label"},
		{name: "pasue on a Namespace", optedIn: true, kubectl: []string{"annotate", "namespace", "NS", "configstamp.dev/pasue=true"}, on: "namespace/NS",
			says: "the annotation configstamp.dev/pasue is not a setting of a Namespace; it has no effect; did you mean the annotation configstamp.dev/pause?"},
		{name: "pause on a ConfigMap", optedIn: true, kubectl: []string{"annotate", "configmap/c", "configstamp.dev/pause=true"}, on: "configmap/c",
			says: "the annotation configstamp.dev/pause has no effect on a ConfigMap or Secret; write it on a workload or its Namespace"},
		{name: "only=configmap/typo on a workload", optedIn: true, kubectl: []string{"annotate", "deployment/d", "configstamp.dev/only=configmap/typo"},
			says: "configstamp.dev/only names configmap/typo, which nothing here references; correct the name, or remove it"},
		{name: "only=configmap/typo on a Namespace", optedIn: true, kubectl: []string{"annotate", "namespace", "NS", "configstamp.dev/only=configmap/d,configmap/typo"}, on: "namespace/NS",
			says: "configstamp.dev/only names configmap/d, which nothing here references; did you mean configmap/c? configstamp.dev/only names configmap/typo, which"},
		{name: "inject=disable on a workload", optedIn: true, kubectl: []string{"label", "deployment/d", "configstamp.dev/inject=disable"},
			says: `the label configstamp.dev/inject: "disable" opts neither in nor out: want enabled or disabled; did you mean disabled?`},
		{name: "configstamp.io", kubectl: []string{"label", "deployment/d", "configstamp.io/inject=enabled"}, on: "deployment/d",
			says: "the label configstamp.io/inject is not a setting of a workload; it has no effect; did you mean the label configstamp.dev/inject?"},
		{name: "a window without a zone", optedIn: true, kubectl: []string{"annotate", "namespace", "NS", "configstamp.dev/window=Mon 22:00-04:00"}, on: "namespace/NS",
			says: `configstamp.dev/window on the Namespace: "Mon 22:00-04:00": a time zone is missing after "22:00-04:00": want one such as Europe/Berlin or UTC`},
	}
}

func TestNearMiss_IsToldWhereItStands(t *testing.T) {
	t.Parallel()
	for _, c := range nearMisses() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := run.PlainSpace(t)
			if c.optedIn {
				s.Label("enabled")
			}
			s.Set("configmap/c", "k", "1")
			manifest := deployment("d", "configmap/c")
			s.Apply(manifest)
			named := strings.NewReplacer("NS", s.Namespace)
			var typed harness.Result
			if c.apply != nil {
				typed = s.Apply(c.apply(manifest))
			} else {
				words := make([]string, len(c.kubectl))
				for i, word := range c.kubectl {
					words[i] = named.Replace(word)
				}
				typed = s.Kubectl(words...)
			}
			if c.on == "" {
				wantWarning(t, typed, "configstamp: "+c.says)
				s.WantNoNote("deployment/d", "SettingHasNoEffect")
				return
			}
			s.WantNote(named.Replace(c.on), c.says)
			if events := s.Kubectl("get", "events").Stdout; !strings.Contains(events, c.says) {
				t.Errorf("who may read the namespace's events does not see it:\n%s", events)
			}
			for _, other := range []string{"namespace/" + s.Namespace, "configmap/c", "deployment/d"} {
				if other != named.Replace(c.on) {
					s.WantNoNote(other, "SettingHasNoEffect")
					s.WantNoNote(other, "PolicyUnreadable")
				}
			}
		})
	}
}

// A workload that is meant to be opted out, and is not, is served as before.
func TestNearMiss_OptsNothingOut(t *testing.T) {
	t.Parallel()
	s, before := one(t, "k", "1")
	s.Kubectl("label", "deployment/d", "configstamp.dev/inject=disable")
	s.Set("configmap/c", "k", "2")
	s.WantRolls(before, rolls{"deployment/d": 1})
}

// kube-root-ca.crt comes a moment after its namespace.
func TestNearMiss_NobodyIsToldOfWhatThePlatformIsAboutToMake(t *testing.T) {
	t.Parallel()
	manifest := workload("Deployment", "d", envFrom("configmap/kube-root-ca.crt")+"volumeMounts: [{name: ca, mountPath: /ca}]\n", "volumes: [{name: ca, configMap: {name: kube-root-ca.crt}}]\n")
	for _, policy := range []settings{nil, {"also": "configmap/kube-root-ca.crt"}} {
		for range 5 {
			s := run.Space(t)
			s.Create(withPolicy(manifest, policy))
			if warnings := s.Warnings(); len(warnings) > 0 {
				t.Errorf("%v: in a new namespace: %q", policy, warnings)
			}
			before := s.Settled("deployment/d")
			if policy != nil { // it is recorded once it is there, which rolls nothing
				s.Eventually("waiting for the record", func() error {
					if s.Record("deployment/d", "configmap/kube-root-ca.crt") == "" {
						return errors.New("there is none")
					}
					return nil
				})
			}
			s.Unchanged(before)
		}
	}
}
