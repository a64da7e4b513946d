package servers

import (
	"context"
	"encoding/base64"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/configstamp/configstamp/e2e/faults"
	"github.com/configstamp/configstamp/e2e/faults/judge"
	"github.com/configstamp/configstamp/e2e/harness"
)

// admissions are questions what a new workload would be admitted with: dry runs, which
// write nothing, so that one whose end is unknown is of no matter.
type admissions struct {
	*person
	object *unstructured.Unstructured

	mu  sync.Mutex
	all []admission
}

type admission struct {
	began, ended time.Time
	stamps       map[string]string
	err          error
}

func newAdmissions(p *person) *admissions {
	return &admissions{person: p, object: faults.Workload("Deployment", "asked", "1", faults.Reads(sources()...)...)}
}

func (a *admissions) ask(ctx context.Context) {
	to := a.person.all.Resource(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}).Namespace(a.Namespace)
	for ; ctx.Err() == nil; time.Sleep(150 * time.Millisecond) {
		one := admission{began: time.Now()}
		// Not ctx: a question that the end of the test interrupts would look like one without an answer.
		answer, err := to.Create(context.Background(), a.object.DeepCopy(), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		one.ended, one.err = time.Now(), err
		if err == nil {
			one.stamps = harness.Stamps(answer)
		}
		a.mu.Lock()
		a.all = append(a.all, one)
		a.mu.Unlock()
	}
}

// late is how much later than etcd the witness may see an edit, on a busy machine.
const late = time.Second

// judge: all were answered, but those that met no API server; each with stamps for
// everything, which are true, or memory's where the webhook could not prove anything.
func (a *admissions) judge(t *testing.T, product *harness.Product, trouble *trouble) {
	t.Helper()
	history, _, err := a.History()
	harness.Must(t, err)
	times := map[string][]edit{}
	for _, source := range sources() {
		times[source] = edits(t, history, source)
	}
	answered, lost, old, longest := 0, 0, 0, time.Duration(0)
	for _, one := range a.all {
		switch {
		case one.err != nil && unmet(one.err):
			lost++
			if !trouble.met(one.began, one.ended) {
				t.Errorf("at %s an admission met no API server, and none was away: %v", one.began.Format(time.TimeOnly), one.err)
			}
			continue
		case one.err != nil:
			t.Errorf("at %s an admission failed: %v", one.began.Format(time.TimeOnly), one.err)
			continue
		}
		answered++
		if took := one.ended.Sub(one.began); took > longest && !trouble.met(one.began, one.ended) {
			longest = took
		}
		stale := false
		for _, source := range sources() {
			stamp, ok := one.stamps[harness.StampKey(source)]
			if !ok {
				t.Errorf("at %s an admission was answered without a stamp of %s: %v", one.began.Format(time.TimeOnly), source, one.stamps)
				continue
			}
			stale = stale || !held(times[source], stamp, one.began.Add(-late), one.ended.Add(late))
		}
		if stale {
			old++
		}
	}
	unproven := harness.Sum(product.Webhooks, "configstamp_freshness_checks_total", `proven="false"`)
	proven := harness.Sum(product.Webhooks, "configstamp_freshness_checks_total", `proven="true"`)
	t.Logf("%d admissions: %d met no API server; %d were answered with older content; the longest of the others took %s; checks: %v proven, %v not",
		len(a.all), lost, old, longest.Round(time.Millisecond), proven, unproven)
	if answered < len(a.all)/2 {
		t.Errorf("only %d of %d admissions were answered, which proves little", answered, len(a.all))
	}
	if float64(old) > unproven {
		t.Errorf("%d admissions were answered with older content, and only %v checks could not prove what there is", old, unproven)
	}
}

// edit is a content of a source, by its digest, and when the witness saw it.
type edit struct {
	digest string
	seen   time.Time
}

func edits(t *testing.T, history *judge.History, source string) (all []edit) {
	t.Helper()
	key := history.Keys[len(history.Keys)-1].Material
	for _, event := range history.Events {
		if judge.Name(event.Object) != source {
			continue
		}
		data := map[string][]byte{}
		text, _, _ := unstructured.NestedStringMap(event.Object.Object, "data")
		for name, value := range text {
			data[name] = []byte(value)
			if event.Object.GetKind() == "Secret" {
				plain, err := base64.StdEncoding.DecodeString(value)
				harness.Must(t, err)
				data[name] = plain
			}
		}
		kind, name, _ := strings.Cut(source, "/")
		all = append(all, edit{harness.Digest(key, kind, history.Namespace, name, data, nil), event.Seen})
	}
	if len(all) == 0 {
		t.Fatalf("nobody has seen %s", source)
	}
	return all
}

// held reports whether a source held what a digest stands for at some moment of a span.
func held(all []edit, digest string, from, to time.Time) bool {
	for i, one := range all {
		over := i+1 < len(all) && all[i+1].seen.Before(from)
		if one.digest == digest && !over && one.seen.Before(to) {
			return true
		}
	}
	return false
}
