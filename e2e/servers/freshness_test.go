package servers

import (
	"fmt"
	"testing"
	"time"

	"github.com/configstamp/configstamp/e2e/faults"
	"github.com/configstamp/configstamp/e2e/harness"
)

const (
	// lag is how far a server is behind: longer than an API server waits for its watch
	// cache (3 s) before it asks etcd, or refuses.
	lag = 6 * time.Second
	// soon is how long it may take until everything carries the truth.
	soon = 45 * time.Second
	// caught is how long it takes to be sure that a server is behind by its whole lag.
	caught = time.Second
)

// A source is edited, and workloads that use it are made and changed at once, while those
// who are asked, or who ask, reach a server whose watch cache is behind. What is admitted
// carries the new content: the webhook reads what is in etcd, whatever it remembers.
func TestStampsAreTrueThroughAServerThatIsBehind(t *testing.T) {
	for _, test := range []struct {
		who                           string
		webhooks, controllers, people bool
	}{
		{"the webhooks reach it", true, false, false},
		{"the controllers reach it", false, true, false},
		{"people reach it", false, false, true},
		{"everybody reaches it", true, true, true},
	} {
		t.Run(test.who, func(t *testing.T) {
			product, p := alone(t)
			names := fanOut(t, p, 4)
			answered := allAnswered(t, first, second, third)
			for all, there := range map[*[]*harness.Process]bool{&product.Webhooks: test.webhooks, &product.Controllers: test.controllers} {
				if there {
					only(second, *all...)
				} else {
					only(first, *all...)
				}
			}
			if p.front.Only(int(first)); test.people {
				p.front.Only(int(second))
			}
			time.Sleep(caught) // their watches are there
			before[second].Lag(lag)
			for i := 1; i <= 5; i++ {
				harness.Must(t, p.Set("configmap/c", value(i)))
				made := fmt.Sprintf("new-%d", i)
				harness.Must(t, p.Create(faults.Workload("Deployment", made, "1", faults.Reads("configmap/c")...)))
				harness.Must(t, p.change(names[i%len(names)], i))
				if old := second.remembers(t, p.Namespace, "c"); old == value(i)["k"] {
					t.Errorf("the server is not behind, so this proves nothing: it remembers %q", old)
				}
				now := p.current(t, "configmap/c")
				if got := p.stampsOf(t, "deployment/"+made)[harness.StampKey("configmap/c")]; got != now {
					t.Errorf("%s was made with the stamp %q, want %q", made, got, now)
				}
				if got := p.changed(t, names[i%len(names)], i)[harness.StampKey("configmap/c")]; got != now {
					t.Errorf("%s was changed to the stamp %q, want %q", names[i%len(names)], got, now)
				}
				if i == 3 { // new watches begin while it is behind
					for _, process := range product.All() {
						process.Front.Cut(int(second))
					}
				}
				time.Sleep(time.Second)
			}
			p.Judge(t, soon)
			answered()
		})
	}
}

// New watches begin at a server that is behind, stays behind, and is the only one. Before a
// watch begins, its version is asked for (package follow), which takes such a server 3 s. What
// it tells then is late, and nothing else: an edit rolls its users all the same.
func TestWatchesBeginAtAServerThatIsBehind(t *testing.T) {
	product, p := alone(t)
	fanOut(t, p, 4)
	p.front.Only(int(first))
	before[second].Lag(lag)
	only(second, product.All()...) // what they had is cut
	for i := 1; i <= 2; i++ {
		harness.Must(t, p.Set("configmap/c", value(i)))
		began := time.Now()
		untrue, err := p.Converge(t.Context(), soon)
		harness.Must(t, err)
		if len(untrue) > 0 {
			t.Errorf("%s after an edit: %v\n%s", soon, untrue, p.Report())
		}
		t.Logf("true %.1fs after the edit, by a server that is %s behind", time.Since(began).Seconds(), lag)
	}
	p.Judge(t, soon)
}

// Of many sources a webhook asks for one list. A server that is behind by more than 3 s has
// it wait that long, which is longer than the check may take: then the single reads decide,
// and what they cannot prove in time comes from memory, and is mended.
func TestManySourcesThroughAServerThatIsBehind(t *testing.T) {
	const sources = 70 // from 64 on it is a list
	product, p := alone(t)
	options := harness.Options{Settle: settle, Webhook: []string{"--freshness-timeout=250ms"}} // as it is shipped
	harness.Must(t, product.Restart(t.Context(), options))
	var reads []string
	for i := range sources {
		reads = append(reads, fmt.Sprintf("configmap/c%d", i))
		harness.Must(t, p.Set(reads[i], value(0)))
	}
	harness.Must(t, p.Create(faults.Workload("Deployment", "w", "1", faults.Reads(reads...)...)))
	only(second, product.Webhooks...)
	only(first, product.Controllers...)
	p.front.Only(int(first))
	time.Sleep(caught)
	before[second].Lag(lag)
	fresh, old := 0, 0
	for i := 1; i <= 5; i++ {
		harness.Must(t, p.Set("configmap/c7", value(i)))
		made := fmt.Sprintf("new-%d", i)
		harness.Must(t, p.Create(faults.Workload("Deployment", made, "1", faults.Reads(reads...)...)))
		if held := second.remembers(t, p.Namespace, "c7"); held == value(i)["k"] {
			t.Errorf("the server is not behind, so this proves nothing: it remembers %q", held)
		}
		if p.stampsOf(t, "deployment/"+made)[harness.StampKey("configmap/c7")] == p.current(t, "configmap/c7") {
			fresh++
		} else {
			old++
		}
		harness.Must(t, p.change("deployment/w", i))
		time.Sleep(time.Second)
	}
	unproven := harness.Sum(product.Webhooks, "configstamp_freshness_checks_total", `proven="false"`)
	t.Logf("of 5 workloads %d were made with the newest content and %d with older; %v checks could not prove anything in time", fresh, old, unproven)
	if float64(old) > unproven {
		t.Errorf("%d workloads were made with older content, and only %v checks failed", old, unproven)
	}
	p.Judge(t, 2*soon)
}

// Nothing can be proven, and memory is old: the only server that the webhooks reach falls
// behind, and then answers nobody. A workload is made with the content that is remembered,
// in time, and gets the truth from the controller once it can be had; a changed template
// keeps what is on record; an order of the controller changes nothing.
func TestWhatCannotBeProvenIsMended(t *testing.T) {
	product, p := alone(t)
	names := fanOut(t, p, 4)
	only(second, product.Webhooks...)
	only(first, product.Controllers...)
	p.front.Only(int(first))
	time.Sleep(caught)
	before[second].Lag(lag)
	answered := allAnswered(t, first) // the second will stand still
	old := p.current(t, "configmap/c")
	key := harness.StampKey("configmap/c")
	harness.Must(t, p.Set("configmap/c", value(1)))
	second.freeze(t)
	for i, what := range []struct {
		do   string
		done func() error
	}{
		{"making a workload", func() error {
			return p.Create(faults.Workload("Deployment", "new", "1", faults.Reads("configmap/c")...))
		}},
		{"changing a template", func() error { return p.change(names[0], 1) }},
	} {
		began := time.Now()
		harness.Must(t, what.done())
		if took := time.Since(began); took > timeout {
			t.Errorf("%s took %s, and the webhook has %s (%d)", what.do, took, timeout, i)
		}
	}
	if got := p.stampsOf(t, "deployment/new")[key]; got != old {
		t.Errorf("the new workload has %q, want what is remembered, %q", got, old)
	}
	if got := p.changed(t, names[0], 1)[key]; got != old {
		t.Errorf("the changed template has %q, want what is on record, %q", got, old)
	}
	time.Sleep(2*settle + 2*timeout) // the controller tries, and nothing can be proven
	for _, name := range append(names, "deployment/new") {
		if got := court.Run.Existing(t, p.Namespace).Stamp(name, "configmap/c"); got != old {
			t.Errorf("%s has %q while nothing can be proven, want %q", name, got, old)
		}
	}
	second.thaw(t)
	p.Judge(t, 2*soon)
	answered()
}

// allAnswered remembers what servers have counted, for a check that they gave up no call
// of a webhook since.
func allAnswered(t *testing.T, servers ...server) (check func()) {
	t.Helper()
	var were [count]float64
	for _, s := range servers {
		were[s] = s.unanswered(t)
	}
	return func() {
		t.Helper()
		for _, s := range servers {
			if more := s.unanswered(t) - were[s]; more > 0 {
				t.Errorf("%s gave up %v calls of a webhook", s.component(), more)
			}
		}
	}
}
