package neighbours

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/configstamp/configstamp/e2e/harness"
)

// Argo CD, and people at the keyboard beside it.
func TestArgoCD(t *testing.T) {
	a := startArgo(t)
	t.Run("People", func(t *testing.T) { argoPeople(t, a) })
	t.Run("Health", func(t *testing.T) { argoHealth(t, a) })
	t.Run("Pause", func(t *testing.T) { argoPause(t, a) })
}

// argoPaused is a Namespace that Argo CD knows in some way, and how long a pause by hand lives there.
type argoPaused struct {
	options argoOptions
	inGit   bool   // the Namespace is a manifest
	says    string // more annotations of the Namespace in Git, or in the Application
	// heals and syncs tell that the pause is there after Argo CD has compared, and after the sync of a commit.
	heals, syncs bool
}

const argoSaysFalse = `, configstamp.dev/pause: "false"`

func argoPauses() map[string]argoPaused {
	created := func(more string) argoOptions {
		return argoOptions{sync: []string{"CreateNamespace=true"}, more: ", managedNamespaceMetadata: {labels: {configstamp.dev/inject: enabled}, annotations: {configstamp.dev/min-interval: 1ms" + more + "}}"}
	}
	server, replace := []string{"ServerSideApply=true"}, []string{"Replace=true"}
	const asks = "ServerSideDiff=true"
	return map[string]argoPaused{
		"ClientSide":                        {inGit: true, heals: true, syncs: true},
		"ServerSide":                        {inGit: true, options: argoOptions{sync: server}, heals: true, syncs: true},
		"ServerSideDiff":                    {inGit: true, options: argoOptions{compare: asks}, heals: true, syncs: true},
		"ServerSideAll":                     {inGit: true, options: argoOptions{sync: server, compare: asks + ",IncludeMutationWebhook=true"}, heals: true, syncs: true},
		"Replace":                           {inGit: true, options: argoOptions{sync: replace}, heals: true},
		"ReplaceOnlyWhatDiffers":            {inGit: true, options: argoOptions{sync: append(replace, "ApplyOutOfSyncOnly=true")}, heals: true, syncs: true},
		"ManagedNamespace":                  {options: created(""), heals: true, syncs: true},
		"ClientSideWithFalseInGit":          {inGit: true, says: argoSaysFalse},
		"ServerSideWithFalseInGit":          {inGit: true, says: argoSaysFalse, options: argoOptions{sync: server}},
		"ServerSideDiffWithFalseInGit":      {inGit: true, says: argoSaysFalse, options: argoOptions{compare: asks}},
		"ManagedNamespaceWithFalseInTheApp": {says: argoSaysFalse, options: created(argoSaysFalse), heals: true},
	}
}

type argoPausedShop struct {
	*argoApplication
	argoPaused
	space  *harness.Space
	git    *repository
	before harness.Counts
}

// One "pause -A" for all of them, as in an incident.
func argoPause(t *testing.T, a *argo) {
	shops := map[string]*argoPausedShop{}
	for name, paused := range argoPauses() {
		shops[name] = a.openPaused(t, paused)
	}
	names := slices.Sorted(maps.Keys(shops))
	for _, name := range names {
		s := shops[name]
		s.wantSynced(s.git.head(t))
		s.wantHealth("Healthy", 5*time.Minute)
		s.before = s.space.Settled("deployment/first")
	}
	plugin := argoPlugin(t)
	t.Log(plugin("pause", "-A", "--reason", "INC-42"))
	for _, name := range names {
		shops[name].refresh()
	}
	time.Sleep(2*argoResync + settle)
	for _, name := range names {
		s := shops[name]
		s.wantPause(name, "compared", s.heals)
		s.git.push(t, "setting", map[string]string{"setting.yaml": argoSetting("other-" + s.name)})
		s.refresh()
	}
	for _, name := range names {
		s := shops[name]
		s.wantSynced(s.git.head(t))
		want := harness.Rolls{}
		if !s.syncs {
			want["deployment/first"] = 1
		}
		s.space.WantRolls(s.before, want)
		s.wantPause(name, "synced a commit", s.syncs)
		if s.syncs {
			s.space.WantNote("deployment/first", "RolloutHeld")
		}
		if s.says == argoSaysFalse {
			s.space.WantNote("namespace/"+s.name, "PauseTakenBack: somebody took back the pause of ")
		} else { // it is there, or Replace=true has taken away who paused, too
			s.space.WantNoNote("namespace/"+s.name, "PauseTakenBack")
		}
		t.Logf("%s: events on the Namespace: %q, on its workload: %q", name, s.space.Notes("namespace/"+s.name), s.space.Notes("deployment/first"))
	}
	t.Log(plugin("doctor", "-A")) // it names the pauses that Git took back
	t.Log(plugin("unpause", "-A"))
	for _, name := range names {
		shops[name].space.WantRolls(shops[name].before, harness.Rolls{"deployment/first": 1})
	}
}

func (a *argo) openPaused(t *testing.T, paused argoPaused) *argoPausedShop {
	t.Helper()
	namespace := "pause-" + rand.String(5)
	s := &argoPausedShop{argoPaused: paused, space: run.Existing(t, namespace)}
	files := map[string]string{
		"setting.yaml": argoSetting("good-" + namespace),
		"first.yaml":   argoWorkload("Deployment", "first", "lenient", "1", "replicas: 1", argoEnvFrom, ""),
	}
	if paused.inGit {
		files["namespace.yaml"] = argoNamespace(namespace, paused.says)
	}
	s.git = newRepository(t, files)
	s.argoApplication = a.keep(t, namespace, s.git.URL, paused.options)
	argoGoes(t, namespace)
	return s
}

func (s *argoPausedShop) wantPause(name, when string, want bool) {
	s.t.Helper()
	said := kubectl(s.t, "get", "namespace", s.name, "-o", `jsonpath={.metadata.annotations.configstamp\.dev/pause} {.metadata.annotations.kubectl\.configstamp\.dev/paused-by}`)
	s.t.Logf("%s: when Argo CD has %s: %s", name, when, said)
	if is := strings.HasPrefix(said, "true "); is != want {
		s.t.Errorf("%s: when Argo CD has %s, the pause is there: %t, want %t\n%s", name, when, is, want, s.report())
	}
}

// argoPlugin builds the plugin, and returns what runs it as the administrator.
func argoPlugin(t *testing.T) func(args ...string) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "kubectl-configstamp")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "../../cmd/kubectl-configstamp").CombinedOutput(); err != nil {
		t.Fatalf("building the plugin: %v\n%s", err, out)
	}
	return func(args ...string) string {
		var out bytes.Buffer
		command := exec.CommandContext(t.Context(), binary, append(args, "--configstamp-namespace", harness.OwnNamespace)...)
		command.Env = append(os.Environ(), "KUBECONFIG="+run.Kubeconfig())
		command.Stdout, command.Stderr = &out, &out
		if err := command.Run(); command.ProcessState == nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("$ kubectl configstamp %s\n%s(exit code %d)", strings.Join(args, " "), out.String(), command.ProcessState.ExitCode())
	}
}
