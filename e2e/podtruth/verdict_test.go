package podtruth

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/configstamp/configstamp/e2e/harness"
)

// The states that the product tells of.
const (
	current = "current"
	old     = "old"
	mixed   = "mixed"
	unknown = "unknown"
)

// grace is for how long nothing has happened before a verdict is judged: what the product
// and the plugin are told takes a moment on a busy machine.
const grace = 2 * time.Second

// counting is how old the leader's counts may be, and some.
const counting = 15*time.Second + 2*grace

// said is what the plugin says of one pod.
type said struct {
	Pod     string   `json:"pod"`
	State   string   `json:"state"`
	Why     string   `json:"why"`
	Sources []source `json:"sources"`
}

type source struct {
	Source string `json:"source"`
	State  string `json:"state"`
	Why    string `json:"why"`
}

// plugin builds the kubectl plugin, and returns what asks it about a namespace.
func plugin(t *testing.T) func(namespace string) ([]said, error) {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "kubectl-configstamp")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "../../cmd/kubectl-configstamp")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the plugin: %v\n%s", err, text)
	}
	return func(namespace string) ([]said, error) {
		var out, errOut bytes.Buffer
		command := exec.Command(binary, "pods", "-n", namespace, "-o", "json", "--configstamp-namespace", harness.OwnNamespace)
		command.Env = append(os.Environ(), "KUBECONFIG="+run.Kubeconfig())
		command.Stdout, command.Stderr = &out, &errOut
		if err := command.Run(); err != nil {
			return nil, fmt.Errorf("kubectl configstamp pods: %w\n%s", err, errOut.String())
		}
		var document struct {
			Answer struct {
				Pods []said `json:"pods"`
			} `json:"answer"`
		}
		err := json.Unmarshal(out.Bytes(), &document)
		return document.Answer.Pods, err
	}
}

// counted is what the leader's metrics say of a namespace, by state; nil when nobody leads.
func counted(namespace string) map[string]int {
	leader := run.Product.Leader()
	if leader == nil {
		return nil
	}
	values, err := leader.Metrics()
	if err != nil {
		return nil
	}
	found := map[string]int{}
	for _, state := range []string{current, old, mixed, unknown} {
		found[state] = int(values[fmt.Sprintf("configstamp_pods{namespace=%q,state=%q}", namespace, state)])
	}
	return found
}

// tally counts verdicts, by what is true and what was said.
type tally struct {
	mu     sync.Mutex
	counts map[string]int
}

func (t *tally) add(what string, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts[what] += n
}

func (t *tally) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var lines []string
	for _, what := range slices.Sorted(maps.Keys(t.counts)) {
		lines = append(lines, fmt.Sprintf("%6d  %s", t.counts[what], what))
	}
	return strings.Join(lines, "\n")
}

// judge compares what is said of a room with what is true, of what stays as it is meanwhile.
func (r *room) judge(ask func(string) ([]said, error), count *tally) error {
	first, was, err := r.look()
	if err != nil {
		return err
	}
	time.Sleep(grace)
	again, _, err := r.look()
	if err != nil {
		return err
	}
	metrics := counted(r.space.Namespace)
	pods, err := ask(r.space.Namespace)
	if err != nil {
		return err
	}
	last, now, err := r.look()
	if err != nil || !maps.EqualFunc(was, now, maps.Equal[map[string]string]) {
		return err
	}
	still := map[string]*truth{}
	for name, t := range first {
		if t.Known && t.equal(again[name]) && t.equal(last[name]) {
			still[name] = t
		}
	}
	for i := range pods {
		if t := still[pods[i].Pod]; t != nil {
			r.judgePod(t, &pods[i], count)
		}
	}
	if time.Since(r.still) > counting {
		r.judgeCounts(first, last, still, metrics, count)
	}
	return nil
}

// judgePod compares what the plugin says of a pod, and of each of its sources.
func (r *room) judgePod(t *truth, pod *said, count *tally) {
	really := func(source string) string {
		switch current, old := t.all(source); {
		case current:
			return "current"
		case old:
			return "old"
		}
		return mixed
	}
	count.add("plugin, pods: "+really("")+", said "+pod.State, 1)
	if wrong(really(""), pod.State) && (pod.State == current || !r.cameBack()) {
		r.t.Errorf("the plugin says of %s that it is %s (%s), and it is %s: %+v", pod.Pod, pod.State, pod.Why, really(""), t.Reads)
		r.tell()
	}
	for _, s := range pod.Sources {
		count.add("plugin, sources of pods: "+really(s.Source)+", said "+s.State, 1)
		if wrong(really(s.Source), s.State) && (s.State == current || !r.cameBack()) {
			r.t.Errorf("the plugin says of %s of %s that it is %s (%s), and it is %s: %+v", s.Source, pod.Pod, s.State, s.Why, really(s.Source), t.Reads)
			r.tell()
		}
	}
}

// wrong reports whether a state may not be said. Unknown may always, and mixed where
// anything is old: the rest may be just not known to be.
func wrong(really, said string) bool {
	return said != unknown && said != really && (said != mixed || really != old)
}

// cameBack reports whether a source holds again what it has held before.
func (r *room) cameBack() bool {
	for _, back := range r.back {
		if back {
			return true
		}
	}
	return false
}

// judgeCounts compares the leader's metrics: of each state no more pods may be counted than
// are in it, those aside of which it is not known, or that change.
func (r *room) judgeCounts(first, last, still map[string]*truth, metrics map[string]int, count *tally) {
	if metrics == nil {
		count.add("metrics: nobody leads", 1)
		return
	}
	really := map[string]int{}
	for _, t := range still {
		switch current, old := t.all(""); {
		case current:
			really["current"]++
		case old:
			really["old"]++
		default:
			really[mixed]++
		}
	}
	names := map[string]bool{}
	for name := range first {
		names[name] = true
	}
	for name := range last {
		names[name] = true
	}
	others := len(names) - len(still)
	really[mixed] += really[old] // see wrong
	for _, state := range []string{current, old, mixed} {
		count.add("metrics, pods: said "+state, metrics[state])
		if others == 0 {
			count.add("metrics, pods of rooms at rest: really "+state, really[state])
		}
		if metrics[state] > really[state]+others && (state == current || !r.cameBack()) {
			r.t.Errorf("the metrics count %v, and %d pods are %s (%d of %d change, or are not running)", metrics, really[state], state, others, len(names))
			for _, t := range still {
				r.t.Logf("%s: %+v", t.Name, t.Reads)
			}
			r.tell()
		}
	}
	count.add("metrics, pods: said "+unknown, metrics[unknown])
}

// tell says what happened to the room lately.
func (r *room) tell() {
	r.t.Logf("what happened:\n%s", strings.Join(r.did[max(0, len(r.did)-25):], "\n"))
}
