package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/configstamp/configstamp/e2e/harness"
)

// What the runbooks have people type to stop everything, and to have it go on.
const (
	stopEverything = "kubectl annotate --overwrite namespace -l configstamp.dev/inject=enabled configstamp.dev/pause=true"
	goOn           = "kubectl annotate namespace -l configstamp.dev/inject=enabled configstamp.dev/pause- kubectl.configstamp.dev/paused-by-"
)

// One command stops what is opted in by its namespace, and one has it go on. What it
// does not stop is in the docs, and here.
func TestStopEverything(t *testing.T) {
	run.Exclusive(t) // every namespace of the cluster stops
	shop, blog, unlabelled := run.Space(t), run.Space(t), run.PlainSpace(t)
	for _, s := range []*harness.Space{shop, blog, unlabelled} {
		s.Set("configmap/c", "k", "1")
	}
	// A pause that was there before, and has ended, is no reason to go on rolling.
	blog.SetPolicy("namespace", settings{"pause": "2020-01-01T00:00:00Z"})
	blog.Create(deployment("web", "configmap/c"))
	for _, name := range []string{"web", "goes", "ordered", "restarted"} {
		shop.Create(deployment(name, "configmap/c"))
	}
	shop.SetPolicy("deployment/goes", settings{"pause": "false"})
	unlabelled.Create(labelled(deployment("own", "configmap/c"), "enabled"))
	all := []string{"deployment/web", "deployment/goes", "deployment/ordered", "deployment/restarted"}
	before, beforeBlog, beforeUnlabelled := shop.Settled(all...), blog.Settled("deployment/web"), unlabelled.Settled("deployment/own")
	wantStamp(t, unlabelled, "deployment/own", "configmap/c")

	everywhere(shop, stopEverything)
	for _, s := range []*harness.Space{shop, blog, unlabelled} {
		s.Edit("configmap/c", "k", "2")
	}
	unlabelled.WantRolls(beforeUnlabelled, rolls{"deployment/own": 1}) // opted in by its own label
	shop.WantRolls(before, rolls{"deployment/goes": 1})                // overrules its Namespace
	shop.WantNote("deployment/web", "configmap/c changed, and this workload rolls out later: configstamp.dev/pause on the Namespace")
	blog.Unchanged(beforeBlog)

	before = shop.Counts()
	shop.Kubectl("patch", "deployment/ordered", "--field-manager=configstamp", "-p", "{}") // a person's order
	shop.Kubectl("rollout", "restart", "deployment/restarted")                             // a changed template
	shop.WantRolls(before, rolls{"deployment/ordered": 1, "deployment/restarted": 1})
	wantStamp(t, shop, "deployment/restarted", "configmap/c") // it took the new content

	// The pause of a Namespace holds what has opted in by itself, too.
	unlabelled.SetPolicy("namespace", settings{"pause": "true"})
	beforeUnlabelled = unlabelled.Counts()
	unlabelled.Edit("configmap/c", "k", "3")
	unlabelled.WantNote("deployment/own", "configstamp.dev/pause on the Namespace")
	unlabelled.Unchanged(beforeUnlabelled)

	before, beforeBlog = shop.Counts(), blog.Counts()
	everywhere(shop, goOn)
	shop.WantRolls(before, rolls{"deployment/web": 1})
	blog.WantRolls(beforeBlog, rolls{"deployment/web": 1})
	unlabelled.Unchanged(beforeUnlabelled)
}

// everywhere runs a command as the administrator, in the cluster that the test has. A
// namespace of the test before may be going: kubectl finds it, and then not.
func everywhere(s *harness.Space, command string) {
	s.Eventually("running "+command, func() error {
		result, err := s.Run.Kubectl("", strings.Fields(command)[1:]...)
		if err == nil && result.Code != 0 {
			err = fmt.Errorf("exit code %d\n%s", result.Code, result.Stderr)
		}
		return err
	})
}
