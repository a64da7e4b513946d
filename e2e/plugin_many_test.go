package e2e

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/configstamp/configstamp/e2e/harness"
)

// What impact promises before an edit is what rolls after it, gates and failures aside.
func TestPlugin_ImpactIsWhatRolls(t *testing.T) {
	harness.Long(t)
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	promised := 0
	for range 6 { // new workloads each time: one that rolls often is slowed down
		s := run.Space(t)
		ask := plugin(t, s)
		everyone := randomUsers(s, rnd, "")
		for range 3 {
			source, key := fmt.Sprintf("configmap/c%d", rnd.IntN(3)), fmt.Sprintf("k%d", rnd.IntN(3))
			out, code := ask("impact", source, "--key", key, "-o", "name")
			want := rolls{}
			for _, name := range strings.Fields(out) {
				want[name] = 1
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
// ways, with all settings that hold nothing for a while. All their names have a prefix.
func randomUsers(s *harness.Space, rnd *rand.Rand, prefix string) (names []string) {
	for i := range 3 {
		s.Set(fmt.Sprintf("configmap/%sc%d", prefix, i), "k0", "1", "k1", "1", "k2", "1")
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
	policies := []settings{nil, nil, nil, {"only": "configmap/" + prefix + "c0"}, {"ignore": "configmap/" + prefix + "c1"}, {"mode": "observe"}, {"restart-on": "startup"}, {"also": "configmap/" + prefix + "c2"}}
	for i, kind := range []string{"Deployment", "Deployment", "Deployment", "StatefulSet", "DaemonSet", "Deployment", "CronJob"} {
		name := fmt.Sprintf("%sw%d", prefix, i)
		container, pod := ways[rnd.IntN(len(ways))](fmt.Sprintf("%sc%d", prefix, rnd.IntN(3)))
		manifest := strings.Replace(workload(kind, name, container, pod...), "replicas: 1", fmt.Sprintf("replicas: %d", rnd.IntN(2)), 1)
		s.Create(withPolicy(manifest, policies[rnd.IntN(len(policies))])) // set later, one may be recorded in the midst of an edit
		names = append(names, strings.ToLower(kind)+"/"+name)
	}
	s.Settled(names...)
	return names
}

// A thousand workloads of one source, and a thousand of a source each: how long the
// commands take is printed, and what they say is checked.
func TestPlugin_AThousand(t *testing.T) {
	harness.Long(t)
	t.Parallel()
	const many = 1000
	for _, sources := range []int{1, many} {
		t.Run(fmt.Sprintf("of %d sources", sources), func(t *testing.T) {
			s := run.Space(t)
			ask := plugin(t, s)
			var all []string
			for i := range sources {
				all = append(all, fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c%d}\ndata: {k: \"1\"}\n", i))
			}
			for i := range many {
				all = append(all, strings.Replace(deployment(fmt.Sprintf("d%d", i), fmt.Sprintf("configmap/c%d", i%sources)), "replicas: 1", "replicas: 0", 1))
			}
			s.Create(strings.Join(all, "\n---\n"))
			viewers(t, s)
			users := many / sources
			for args, part := range map[string]string{
				"users configmap/c0":  fmt.Sprintf("%d of %d restart", users, users),
				"impact configmap/c0": "would restart",
				"status":              fmt.Sprintf("%d workloads: %d done", many, many),
				"why deployment/d0":   "in step",
				"graph configmap/c0":  "deployment/d0",
				"users configmap/c0 --as v --as-group viewers": fmt.Sprintf("of %d restart", users),
			} {
				began := time.Now()
				out, code := ask(strings.Fields(args)...)
				t.Logf("%s took %s", args, time.Since(began).Round(time.Millisecond))
				if !strings.Contains(out, part) || code != 0 {
					t.Errorf("%s: want %q, exit code 0; got %d and\n%.2000s", args, part, code, out)
				}
			}
		})
	}
}

// A user of one namespace asks for it, and for all.
func TestPlugin_AUserOfOneNamespace(t *testing.T) {
	t.Parallel()
	s := run.Space(t)
	ask := plugin(t, s)
	s.Set("configmap/c", "k", "1")
	s.Create(strings.Replace(deployment("d", "configmap/c"), "replicas: 1", "replicas: 0", 1))
	s.Settled("deployment/d")
	s.Kubectl("create", "rolebinding", "editors", "--clusterrole=edit", "--group=editors")
	for args, want := range map[string]struct {
		part string
		code int
	}{
		"users configmap/c": {"1 of 1 restart", 0},
		"status":            {"1 workload: 1 done.", 0},
		"why deployment/d":  {"in step", 0},
		"status -A":         {"you have no right to list any kind of workload in all namespaces", 1},
	} {
		words := append(strings.Fields(args), "--as", "somebody", "--as-group", "editors")
		out, code := ask(words...)
		if !strings.Contains(out, want.part) || code != want.code {
			t.Errorf("%s: want %q, exit code %d; got %d and\n%s", args, want.part, want.code, code, out)
		}
	}
}
