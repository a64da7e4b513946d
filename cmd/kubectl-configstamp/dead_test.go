package main

import (
	"strings"
	"testing"
)

const aRollout = `
apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {name: canary, namespace: shop}
spec: {template: {spec: {containers: [{name: c, image: "web:1", envFrom: [{configMapRef: {name: web}}]}]}}}`

// A group of custom kinds that is away, wholly or its objects alone, is left out and named. Everything else is
// answered as without it.
func TestADeadGroupEndsNoAnswer(t *testing.T) {
	for about, dead := range map[string]func(group, resource string) bool{
		"what it serves": func(group, _ string) bool { return group == "argoproj.io" },
		"its objects":    func(group, resource string) bool { return group == "argoproj.io" && resource != "" },
	} {
		for _, args := range [][]string{
			{"users", "configmap/web"}, {"doctor"},
		} {
			t.Run(about+": "+strings.Join(args, " "), func(t *testing.T) {
				server := healthy(t)
				want, _, _ := run(t, server, args...)
				server.Apply(t, aRollout)
				server.Dead = dead
				out, errOut, _ := run(t, server, args...)
				if out != want && args[0] != "doctor" || strings.Contains(errOut, "error: listing") || strings.Contains(errOut, "error: asking") {
					t.Errorf("it says\n%s%s\nwant\n%s", out, errOut, want)
				}
				if !strings.Contains(errOut, "rollouts.argoproj.io") {
					t.Errorf("it does not say that Rollouts could not be looked at: %s", errOut)
				}
			})
		}
	}
	server := healthy(t)
	server.Dead = func(group, _ string) bool { return group == "argoproj.io" }
	golden(t, "doctor/dead-group", server, "doctor")
}
