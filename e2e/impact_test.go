package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/configstamp/configstamp/e2e/harness"
)

// What whoever edits a ConfigMap is told at once: by kubectl, on its standard error.

// A way to change a ConfigMap by kubectl.
type impactVerb struct {
	name string
	// change gives the ConfigMap of that name another value, or deletes it; further
	// arguments, such as --dry-run=server, come last.
	change func(s *harness.Space, args ...string) harness.Result
	noDry  bool // there is no --dry-run for it
}

func impactVerbs() []impactVerb {
	input := func(verb, name string, more ...string) func(*harness.Space, ...string) harness.Result {
		return func(s *harness.Space, args ...string) harness.Result {
			return s.KubectlInput(twoKeys(name, "2"), append(append([]string{verb, "-f", "-"}, more...), args...)...)
		}
	}
	return []impactVerb{
		{name: "edit", noDry: true, change: func(s *harness.Space, _ ...string) harness.Result {
			return s.KubectlEnv([]string{`EDITOR=sed -i 's|k: "1"|k: "2"|'`}, "edit", "configmap/edit")
		}},
		{name: "apply", change: input("apply", "apply")},
		{name: "server-side", change: input("apply", "server-side", "--server-side")},
		{name: "patch", change: func(s *harness.Space, args ...string) harness.Result {
			return s.Kubectl(append([]string{"patch", "configmap/patch", "-p", `{"data":{"k":"2"}}`}, args...)...)
		}},
		{name: "replace", change: input("replace", "replace")},
		{name: "delete", change: func(s *harness.Space, args ...string) harness.Result {
			return s.Kubectl(append([]string{"delete", "configmap/delete"}, args...)...)
		}},
	}
}

// twoKeys is a ConfigMap of one key that is used, and one that is not.
func twoKeys(name, value string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {k: %q, unused: \"1\"}\n", name, value)
}

// unguarded is what is said of the first workload if its controller would accept pods that crash.
const unguarded = "has neither a readiness probe nor minReadySeconds: new pods that crash can replace all old ones"

// readerOf is a Deployment with a readiness probe that reads one key of a source.
func readerOf(name, source, key string) string {
	kind, bare, _ := strings.Cut(source, "/")
	ref := map[string]string{"configmap": "configMapKeyRef", "secret": "secretKeyRef"}[kind]
	return workload("Deployment", name, fmt.Sprintf("readinessProbe: {tcpSocket: {port: 80}}\nenv:\n- {name: K, valueFrom: {%s: {name: %s, key: %s}}}\n", ref, bare, key))
}

// wantSaid checks that kubectl showed these warnings, word by word, and no others.
func wantSaid(t *testing.T, what string, result harness.Result, want ...string) {
	t.Helper()
	if got := result.Warnings(); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s: warnings\n%s\nwant\n%s\nall of it:\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"), result.Stderr)
	}
}

// Each verb of kubectl says what rolls, and so it is; as a dry run it says the same, and
// nothing rolls.
func TestImpact_IsSaidByEveryVerbOfKubectl(t *testing.T) {
	t.Parallel()
	s := run.Space(t)
	verbs, users, want := impactVerbs(), []string{}, rolls{}
	for _, verb := range verbs {
		create := []string{"apply", "-f", "-"}
		if verb.name == "server-side" {
			create = append(create, "--server-side")
		}
		s.KubectlInput(twoKeys(verb.name, "1"), create...)
		s.Create(deployment(verb.name+"-a", "configmap/"+verb.name))
		s.Create(readerOf(verb.name+"-b", "configmap/"+verb.name, "k"))
		for _, user := range []string{"deployment/" + verb.name + "-a", "deployment/" + verb.name + "-b"} {
			if users = append(users, user); verb.name != "delete" {
				want[user] = 1
			}
		}
	}
	before := s.Settled(users...)
	texts := func(verb impactVerb) []string {
		both := fmt.Sprintf("deployment/%[1]s-a and deployment/%[1]s-b", verb.name)
		if verb.name == "delete" {
			return []string{"configstamp: without this configmap no new pod of " + both + " can start"}
		}
		return []string{"configstamp: this change rolls out " + both, "configstamp: deployment/" + verb.name + "-a " + unguarded}
	}
	for _, verb := range verbs {
		if !verb.noDry {
			wantSaid(t, verb.name+" --dry-run=server", verb.change(s, "--dry-run=server"), texts(verb)...)
		}
	}
	s.Unchanged(before)
	for _, verb := range verbs {
		wantSaid(t, verb.name, verb.change(s), texts(verb)...)
	}
	s.WantRolls(before, want)
}

// Who writes without a person at the keyboard.
var (
	robot    = []string{"--as=system:serviceaccount:team:robot", "--as-group=system:serviceaccounts", "--as-group=system:serviceaccounts:team", "--as-group=writers"}
	deployer = []string{"--as=system:serviceaccount:ci:deployer", "--as-group=system:serviceaccounts", "--as-group=system:serviceaccounts:ci", "--as-group=writers"}
	kubelet  = []string{"--as=system:node:n", "--as-group=system:nodes", "--as-group=writers"}
)

// Nothing is said where nothing rolls, where nobody reads it, and where it is off.
func TestImpact_NothingIsSaid(t *testing.T) {
	t.Parallel()
	s, plain := run.Space(t), run.PlainSpace(t)
	s.Kubectl("create", "rolebinding", "writers", "--clusterrole=edit", "--group=writers")
	s.Apply(twoKeys("c", "1"))
	s.Apply(twoKeys("lonely", "1"))
	s.Apply(twoKeys("left-alone", "1"))
	s.Create(readerOf("d", "configmap/c", "k"))
	s.Create(labelled(readerOf("out", "configmap/left-alone", "k"), "disabled"))
	s.Set("secret/release", "k", "1")
	plain.Apply(twoKeys("c", "1"))
	plain.Create(labelled(readerOf("d", "configmap/c", "k"), "enabled"))
	plainBefore, before := plain.Settled("deployment/d"), s.Settled("deployment/d", "deployment/out")

	patch := func(source, value string, more ...string) []string {
		return append([]string{"patch", source, "--type=merge", "-p", fmt.Sprintf(`{"data":{"k":%q}}`, value)}, more...)
	}
	for what, args := range map[string][]string{
		"an annotation":                 {"annotate", "configmap/c", "note=x"},
		"a label":                       {"label", "configmap/c", "team=a"},
		"a key that nobody uses":        {"patch", "configmap/c", "-p", `{"data":{"unused":"2"}}`},
		"a key more":                    {"patch", "configmap/c", "-p", `{"data":{"more":"2"}}`},
		"what is there already":         {"patch", "configmap/c", "-p", `{"data":{"k":"1"}}`},
		"a source that nobody uses":     patch("configmap/lonely", "2"),
		"one whose user is opted out":   patch("configmap/left-alone", "2"),
		"by a service account":          patch("configmap/c", "robot", append(robot, "--dry-run=server")...),
		"by a node":                     patch("configmap/c", "node", append(kubelet, "--dry-run=server")...),
		"the deletion of what is alone": {"delete", "configmap/lonely", "--dry-run=server"},
	} {
		wantSaid(t, what, s.Kubectl(args...))
	}
	s.Unchanged(before)

	// A workload that opted in by itself: it rolls, and nothing is said.
	wantSaid(t, "a namespace that has not opted in", plain.Kubectl(patch("configmap/c", "2")...))
	plain.WantRolls(plainBefore, rolls{"deployment/d": 1})

	const rollsD = "configstamp: this change rolls out deployment/d"
	wantSaid(t, "by a person", s.Kubectl(patch("configmap/c", "person", "--dry-run=server")...), rollsD)
	wantSaid(t, "by a service account that is listed", s.Kubectl(patch("configmap/c", "deployer", deployer...)...), rollsD)
	s.WantRolls(before, rolls{"deployment/d": 1})
}
