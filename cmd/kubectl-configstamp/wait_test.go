package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/configstamp/configstamp/e2e/fakecluster"
)

func TestWait_Golden(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := piped(t)
		golden(t, "wait-done", server, "wait", "deployment/in-step")
		golden(t, "wait-done-json", server, "wait", "deployment/in-step", "-o", "json")
		golden(t, "wait-halted", server, "wait", "configmap/payment-api-config")
		golden(t, "wait-halted-name", server, "wait", "configmap/payment-api-config", "-o", "name")
		golden(t, "wait-held", server, "wait", "deployment/paused")
		golden(t, "wait-not-served", server, "wait", "deployment/mislabelled")
		golden(t, "wait-nothing", server, "wait", "configmap/no-such")
		golden(t, "wait-secret-of-failed", server, "wait", "secret/db")
	})
}

const (
	deploymentInStep = "/apis/apps/v1/namespaces/shop/deployments/in-step"
	configMap        = "/api/v1/namespaces/shop/configmaps/payment-api-config"
)

// Every way to end has its exit code.
func TestWait_ExitCodes(t *testing.T) {
	for name, test := range map[string]struct {
		hinder func(*testing.T, *fakecluster.Server)
		args   string
		code   int
		says   string
	}{
		"in step and rolled out":            {nil, "deployment/in-step", 0, "is in step and rolled out"},
		"failed":                            {nil, "deployment/failed", 2, "CrashLoopBackOff"},
		"halted":                            {nil, "sts/halted", 2, "halted"},
		"the answer is about another state": {moved, "deployment/in-step --timeout=300ms", 4, "it was changed a moment ago"},
		"paused for good":                   {setPause("true"), "deployment/paused", 3, "unpause deployment/paused"},
		"paused for too long":               {nil, "deployment/paused --timeout=1h", 3, "2026-11-22T06:00:00Z"},
		"paused for less than the timeout":  {setPause("2026-11-22T03:00:00.1Z"), "deployment/paused --timeout=300ms", 4, "timed out after 300ms"},
		"observe":                           {answers("observed"), "deployment/in-step", 3, "configstamp.dev/mode is observe"},
		"missing":                           {answers("missing"), "deployment/in-step", 3, "held"},
		"deferred":                          {answers("deferred"), "deployment/in-step --timeout=300ms", 4, "timed out"},
		"not rolled out":                    {status("updatedReplicas", 1), "deployment/in-step --timeout=300ms", 4, "1 of 2 pods are new and available"},
		"its controller has not looked":     {status("observedGeneration", 0), "deployment/in-step --timeout=300ms", 4, "timed out"},
		"its pods stay":                     {onDelete, "sts/halted", 3, "1 of 1 pods are old, and stay: its update strategy is OnDelete"},
		"the webhook is stopped":            {func(_ *testing.T, s *fakecluster.Server) { s.Dry = nil }, "deployment/in-step", 5, "the webhook said nothing"},
		"another webhook refuses dry runs": {func(_ *testing.T, s *fakecluster.Server) {
			s.Dry = func(string, *unstructured.Unstructured) ([]string, error) {
				return nil, errors.New(`admission webhook "policy.example.com" does not support dry run`)
			}
		}, "deployment/in-step", 5, "another webhook refuses dry runs"},
		"no right to patch":              {forbid("patch", ""), "deployment/in-step", 5, "no right to patch"},
		"no right to patch, of a source": {forbid("patch", ""), "configmap/payment-api-config", 5, "no right to patch"},
		"no right to list one kind":      {forbid("list", "daemonsets"), "secret/fine", 5, "daemonsets"},
		"no such workload":               {nil, "deployment/no-such", 1, "not found"},
		"a timeout that is none":         {nil, "deployment/in-step --timeout=-1s", 1, "--timeout"},
		"nobody uses it":                 {nil, "secret/unused", 0, "No workload uses secret/unused"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := piped(t)
				for _, secret := range []string{"fine", "unused"} {
					server.Apply(t, "apiVersion: v1\nkind: Secret\nmetadata: {name: "+secret+", namespace: shop}")
				}
				if test.hinder != nil {
					test.hinder(t, server)
				}
				begun := time.Now()
				out, errOut, code := run(t, server, append([]string{"wait"}, strings.Fields(test.args)...)...)
				switch took := time.Since(begun); {
				case code != exitTimedOut && took > time.Minute:
					t.Errorf("it ends after %s, though nothing is left to wait for", took)
				case (code == exitHalted || code == exitHeld) && took < usualPatience().settled:
					t.Errorf("it believes bad news after %s", took)
				}
				if code != test.code || !strings.Contains(strings.Join(strings.Fields(out+errOut), " "), test.says) {
					t.Errorf("exit code %d, want %d, and %q in:\n%s%s", code, test.code, test.says, out, errOut)
				}
				if code != 0 && strings.Contains(out, "is in step and rolled out") {
					t.Errorf("it says in step:\n%s", out)
				}
			})
		})
	}
}

func setPause(value string) func(*testing.T, *fakecluster.Server) {
	return func(t *testing.T, s *fakecluster.Server) {
		paused := s.Get(t, "/apis/apps/v1/namespaces/shop/deployments/paused")
		paused.SetAnnotations(map[string]string{"configstamp.dev/pause": value})
		s.Put(paused)
	}
}

func answers(code string) func(*testing.T, *fakecluster.Server) {
	return func(_ *testing.T, s *fakecluster.Server) {
		s.Dry = func(string, *unstructured.Unstructured) ([]string, error) {
			return []string{"configstamp: " + code + ": as the test says"}, nil
		}
	}
}

func status(field string, value int64) func(*testing.T, *fakecluster.Server) {
	return func(t *testing.T, s *fakecluster.Server) {
		object := s.Get(t, deploymentInStep)
		if err := unstructured.SetNestedField(object.Object, value, "status", field); err != nil {
			t.Fatal(err)
		}
		s.Put(object)
	}
}

// moved has the workload changed between being read and being asked for.
func moved(_ *testing.T, s *fakecluster.Server) {
	s.Dry = func(_ string, object *unstructured.Unstructured) ([]string, error) {
		object.SetGeneration(object.GetGeneration() + 1)
		return []string{inStep}, nil
	}
}

func forbid(verb, resource string) func(*testing.T, *fakecluster.Server) {
	return func(_ *testing.T, s *fakecluster.Server) {
		s.Forbid = func(to, of, _ string) bool { return to == verb && (resource == "" || of == resource) }
	}
}

func onDelete(t *testing.T, s *fakecluster.Server) {
	answers("in-step")(t, s)
	object := s.Get(t, "/apis/apps/v1/namespaces/shop/statefulsets/halted")
	for _, of := range []struct {
		value any
		path  []string
	}{{"OnDelete", []string{"spec", "updateStrategy", "type"}}, {int64(0), []string{"status", "updatedReplicas"}}} {
		if err := unstructured.SetNestedField(object.Object, of.value, of.path...); err != nil {
			t.Fatal(err)
		}
	}
	s.Put(object)
}

// It waits while something moves, and says what it waits for.
func TestWait_WaitsForTheRollout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := piped(t)
		status("updatedReplicas", 1)(t, server)
		ctx, stop := context.WithTimeout(t.Context(), soon)
		defer stop()
		said := &lines{wanted: "waiting for deployment/in-step rolling", seen: make(chan struct{}, 1)}
		p := newPlugin(genericiooptions.IOStreams{In: strings.NewReader(""), Out: io.Discard, ErrOut: said}, atThree)
		p.config.WrapConfigFn = server.Wrap
		root := rootCommand(p)
		root.SetArgs([]string{"wait", "deployment/in-step", "--kubeconfig", server.Kubeconfig(t, "shop")})
		ended := make(chan error, 1)
		go func() { ended <- root.ExecuteContext(ctx) }()
		said.wait(ctx, t)
		time.Sleep(20 * time.Second)
		status("updatedReplicas", 2)(t, server)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// A halt that was told of before the source was edited again, or released, is over.
func TestWait_AHaltEndsWithAnEditOrARelease(t *testing.T) {
	for name, mend := range map[string]func(*testing.T, *unstructured.Unstructured){
		"edit": func(_ *testing.T, source *unstructured.Unstructured) {
			fields := source.GetManagedFields()
			fields[0].Time.Time = atThree().Add(-time.Minute)
			source.SetManagedFields(fields)
		},
		"release": func(_ *testing.T, source *unstructured.Unstructured) {
			source.SetAnnotations(map[string]string{"configstamp.dev/resume": "2026-11-22T02:59:00Z"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := piped(t)
				source := server.Get(t, configMap)
				mend(t, source)
				server.Put(source)
				if _, errOut, code := run(t, server, "wait", "sts/halted", "--timeout=1m"); code != 4 {
					t.Errorf("exit code %d, want it to wait (4):\n%s", code, errOut)
				}
			})
		})
	}
}

// Who may list no workload knows nothing of a source's users, and no pipeline goes on by it.
func TestWait_OfNothingThatCanBeSeenIsUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := piped(t)
		forbid("list", "")(t, server)
		if _, errOut, code := run(t, server, "wait", "configmap/payment-api-config", "--timeout=5s"); code != exitUnknown {
			t.Errorf("exit code %d, want %d:\n%s", code, exitUnknown, errOut)
		}
	})
}
