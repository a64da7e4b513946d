package e2e

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/configstamp/configstamp/e2e/harness"
	"github.com/configstamp/configstamp/internal/report"
)

// The workloads that users prints before an edit are those that roll after it, gates and failures aside.
func TestPlugin_UsersAreWhatRolls(t *testing.T) {
	harness.Long(t)
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	promised := 0
	for range 6 { // new workloads each time: one that rolls often is slowed down
		s := run.Space(t)
		ask := plugin(t, s)
		everyone := randomUsers(s, rnd)
		for range 3 {
			source, key := fmt.Sprintf("configmap/c%d", rnd.IntN(3)), fmt.Sprintf("k%d", rnd.IntN(3))
			out, code := ask("users", source, "--key", key, "-o", "name")
			want := rolls{}
			for _, name := range strings.Fields(out) {
				kind, name, _ := strings.Cut(name, "/") // deployment.apps/w0
				kind, _, _ = strings.Cut(kind, ".")
				want[kind+"/"+name] = 1
			}
			if promised += len(want); code != 0 {
				t.Fatalf("seed %d: exit code %d", seed, code)
			}
			before := s.Settled(everyone...)
			s.Edit(source, key, fmt.Sprint(rnd.Uint64()))
			s.WantRolls(before, want)
		}
	}
	if promised == 0 {
		t.Errorf("seed %d: nothing was to roll in any edit", seed)
	}
}

// randomUsers makes three ConfigMaps of three keys, and workloads that use them in all
// ways, with all settings that hold nothing for a while.
func randomUsers(s *harness.Space, rnd *rand.Rand) (names []string) {
	for i := range 3 {
		s.Set(fmt.Sprintf("configmap/c%d", i), "k0", "1", "k1", "1", "k2", "1")
	}
	ways := []func(source string) (container string, pod []string){
		func(source string) (string, []string) { return envFrom("configmap/" + source), nil },
		func(source string) (string, []string) {
			return fmt.Sprintf("env:\n- name: K\n  valueFrom: {configMapKeyRef: {name: %s, key: k%d}}\n", source, rnd.IntN(3)), nil
		},
		func(source string) (string, []string) {
			return "volumeMounts: [{name: v, mountPath: /etc/v}]\n", []string{"volumes: [{name: v, configMap: {name: " + source + "}}]\n"}
		},
		func(source string) (string, []string) {
			return fmt.Sprintf("volumeMounts: [{name: v, mountPath: /etc/v, subPath: k%d}]\n", rnd.IntN(3)), []string{"volumes: [{name: v, configMap: {name: " + source + "}}]\n"}
		},
		func(source string) (string, []string) {
			return "", []string{"volumes: [{name: v, configMap: {name: " + source + "}}]\n"}
		},
	}
	policies := []settings{nil, nil, nil, {"only": "configmap/c0"}, {"ignore": "configmap/c1"}, {"mode": "observe"}, {"restart-on": "startup"}, {"also": "configmap/c2"}}
	for i, kind := range []string{"Deployment", "Deployment", "Deployment", "StatefulSet", "DaemonSet", "Deployment", "CronJob"} {
		name := fmt.Sprintf("w%d", i)
		container, pod := ways[rnd.IntN(len(ways))](fmt.Sprintf("c%d", rnd.IntN(3)))
		manifest := strings.Replace(workload(kind, name, container, pod...), "replicas: 1", fmt.Sprintf("replicas: %d", rnd.IntN(2)), 1)
		s.Create(withPolicy(manifest, policies[rnd.IntN(len(policies))])) // set later, one may be recorded in the midst of an edit
		names = append(names, strings.ToLower(kind)+"/"+name)
	}
	s.Settled(names...)
	return names
}

// A user of one namespace asks for it, and for all.
func TestPlugin_AUserOfOneNamespace(t *testing.T) {
	t.Parallel()
	s := run.Space(t)
	ask := plugin(t, s)
	s.Set("configmap/c", "k", "1")
	s.Create(podless("d", "configmap/c"))
	s.Settled("deployment/d")
	s.Kubectl("create", "rolebinding", "editors", "--clusterrole=edit", "--group=editors")
	s.Set("configmap/c", "k", "2")
	s.WantReport("configmap/c", report.Complete, nil) // that decides also where other kinds may not be listed
	for args, want := range map[string]struct {
		part string
		code int
	}{
		"users configmap/c": {"deployment/d later pods envFrom: all keys", 0},
		"status":            {"Nothing is under way", 0},
		"wait configmap/c":  {"1 of 1 workloads have it", 0},
		"wait deployment/d": {"deployment/d in namespace", 0},
		"why deployment/d":  {"Next: nothing", 0},
		"status -A":         {"is forbidden", 1},
	} {
		words := append(strings.Fields(args), "--as", "somebody", "--as-group", "editors")
		out, code := ask(words...)
		if !strings.Contains(strings.Join(strings.Fields(out), " "), want.part) || code != want.code {
			t.Errorf("%s: want %q, exit code %d; got %d and\n%s", args, want.part, want.code, code, out)
		}
	}
}
