package servers

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/configstamp/configstamp/e2e/faults"
	"github.com/configstamp/configstamp/e2e/faults/judge"
	"github.com/configstamp/configstamp/e2e/harness"
)

// value is a content that is told from all others by a number.
func value(n int) map[string]string {
	return map[string]string{"k": fmt.Sprintf("%s-%d", judge.Marker, n)}
}

// person works in a namespace of his own, through a balancer before the API servers. Each
// of his requests is a connection, as each kubectl is.
type person struct {
	*faults.Trial
	front *harness.Balancer
	all   dynamic.Interface
}

// gone is when a person gives up waiting for an API server.
const gone = 8 * time.Second

func newPerson(t *testing.T) *person {
	t.Helper()
	front, config := court.Run.Front(t)
	secure, err := rest.TLSConfigFor(config)
	harness.Must(t, err)
	all, err := dynamic.NewForConfigAndClient(config, &http.Client{
		Transport: &http.Transport{TLSClientConfig: secure, DisableKeepAlives: true}, Timeout: gone,
	})
	harness.Must(t, err)
	p := &person{Trial: court.Trial(t), front: front, all: all}
	p.User = faults.NewUser(all, p.Namespace)
	return p
}

// stampsOf are the stamps with which a workload was stored first.
func (p *person) stampsOf(t *testing.T, name string) map[string]string {
	t.Helper()
	return p.when(t, name, func(event judge.Event) bool { return event.Type == watch.Added })
}

// changed are the stamps with which the change n of a template was stored.
func (p *person) changed(t *testing.T, name string, n int) map[string]string {
	t.Helper()
	return p.when(t, name, func(event judge.Event) bool { return roundOf(event.Object) == n })
}

// when are the stamps of a workload at the first of its events that is meant.
func (p *person) when(t *testing.T, name string, meant func(judge.Event) bool) map[string]string {
	t.Helper()
	harness.Must(t, p.Court.Witness.CatchUp(t.Context(), p.Namespace))
	history, _, err := p.History()
	harness.Must(t, err)
	for _, event := range history.Events {
		if judge.Name(event.Object) == name && meant(event) {
			return harness.Stamps(event.Object)
		}
	}
	t.Fatalf("nobody has seen %s\n%s", name, history)
	return nil
}

// current is the digest of what a source holds.
func (p *person) current(t *testing.T, source string) string {
	t.Helper()
	return court.Run.Existing(t, p.Namespace).Digest(source)
}

// round is a label of templates by which changes of people are known.
const round = "round"

// change changes the template of a workload; n tells the change from all others.
func (p *person) change(name string, n int) error {
	patch := fmt.Sprintf(`{"spec":{"template":{"metadata":{"labels":{%q:"%d"}}}}}`, round, n)
	if strings.HasPrefix(name, "cronjob/") {
		patch = fmt.Sprintf(`{"spec":{"jobTemplate":%s}}`, patch)
	}
	return p.Patch(name, patch)
}

// roundOf is the last change of a template by people.
func roundOf(object *unstructured.Unstructured) int {
	path := []string{"spec", "template"}
	if object.GetKind() == "CronJob" {
		path = []string{"spec", "jobTemplate", "spec", "template"}
	}
	text, _, _ := unstructured.NestedString(object.Object, append(path, "metadata", "labels", round)...)
	n, _ := strconv.Atoi(text)
	return n
}

// claim takes it as the person's own that workloads were written by requests whose end he
// does not know: their server was killed, or answered nobody until he had given up. They
// carry his signature.
func (p *person) claim(t *testing.T) (claimed int) {
	t.Helper()
	harness.Must(t, p.Court.Witness.CatchUp(t.Context(), p.Namespace))
	history, _, err := p.History()
	harness.Must(t, err)
	signed := map[string]string{}
	for _, event := range history.Events {
		uid, mark := string(event.Object.GetUID()), event.Object.GetAnnotations()[judge.Signature]
		switch event.Object.GetKind() {
		case "Deployment", "StatefulSet", "DaemonSet", "CronJob":
		default: // a revision, which has a copy, or what nobody signs
			continue
		}
		if mark == signed[uid] {
			continue
		}
		signed[uid] = mark
		if _, known := history.Writes[event.Version]; !known && event.Type != watch.Deleted {
			claimed++
			harness.Must(t, p.Note("of unknown end: "+judge.Name(event.Object), event.Object.GetResourceVersion(), event.Seen))
		}
	}
	return claimed
}
