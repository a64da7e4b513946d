package servers

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configstamp/configstamp/e2e/harness"
)

// every is how often the controllers are looked at.
const every = 100 * time.Millisecond

// look is what one controller says of itself, and what the Lease says of it.
type look struct {
	at    time.Time
	there bool
	leads bool
	holds bool
	acts  float64 // rolling patches so far
}

// leaders looks at the controllers all the time: who leads, who acts, and who holds the
// Lease in etcd.
type leaders struct {
	mu    sync.Mutex
	looks [][]look // of each controller
	wrong []string
	terms []string // who led, one after the other
}

// watchLeaders looks until the test ends; found tells what was wrong, and how often the
// leader changed.
func watchLeaders(t *testing.T, product *harness.Product) *leaders {
	t.Helper()
	l := &leaders{looks: make([][]look, len(product.Controllers))}
	ctx, stop := context.WithCancel(context.Background())
	var looking sync.WaitGroup
	looking.Go(func() {
		for ctx.Err() == nil {
			l.look(ctx, product)
			time.Sleep(every)
		}
	})
	t.Cleanup(func() {
		stop()
		looking.Wait()
		l.mu.Lock()
		defer l.mu.Unlock()
		for i, looks := range l.looks {
			if len(looks) < 10 {
				t.Errorf("%s was looked at %d times, which proves nothing", product.Controllers[i].Name, len(looks))
			}
		}
		for _, one := range l.wrong {
			t.Error(one)
		}
		t.Logf("led: %v", l.terms)
	})
	return l
}

var tookIt = regexp.MustCompile(`"msg":"Took the lease".*"identity":"([^"]+)"`)

// identity is by which a process last held the Lease.
func identity(process *harness.Process) string {
	all := tookIt.FindAllStringSubmatch(process.Log(), -1)
	if len(all) == 0 {
		return ""
	}
	return all[len(all)-1][1]
}

func (l *leaders) look(ctx context.Context, product *harness.Product) {
	holder := ""
	if lease, err := court.Run.Client.CoordinationV1().Leases(harness.OwnNamespace).Get(ctx, "configstamp-controller", metav1.GetOptions{}); err == nil && lease.Spec.HolderIdentity != nil {
		holder = *lease.Spec.HolderIdentity
	}
	now := make([]look, len(product.Controllers))
	var asking sync.WaitGroup
	for i, process := range product.Controllers {
		asking.Go(func() {
			values, err := process.Metrics()
			now[i] = look{at: time.Now(), there: err == nil, leads: values["configstamp_leader"] == 1, holds: holder != "" && identity(process) == holder}
			for name, value := range values {
				if strings.HasPrefix(name, "configstamp_readmissions_total{") && strings.Contains(name, `manner="rolling"`) {
					now[i].acts += value
				}
			}
		})
	}
	asking.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, one := range now {
		l.judge(product.Controllers[i].Name, i, one, now)
		l.looks[i] = append(l.looks[i], one)
	}
}

// judge compares a look at one controller with the last one, and with those at the others.
func (l *leaders) judge(name string, i int, one look, now []look) {
	for j, other := range now {
		if j > i && one.leads && other.leads {
			l.wrong = append(l.wrong, fmt.Sprintf("%s: two controllers lead at once", one.at.Format(time.TimeOnly)))
		}
	}
	if term := name; one.leads && (len(l.terms) == 0 || l.terms[len(l.terms)-1] != term) {
		l.terms = append(l.terms, term)
	}
	if len(l.looks[i]) == 0 {
		return
	}
	last := l.looks[i][len(l.looks[i])-1]
	for j, other := range now {
		if j == i || len(l.looks[j]) == 0 {
			continue
		}
		if before := l.looks[j][len(l.looks[j])-1]; other.holds && before.holds && one.acts > last.acts && last.there {
			l.wrong = append(l.wrong, fmt.Sprintf("%s: %s sends patches while another holds the lease", one.at.Format(time.TimeOnly), name))
		}
	}
}

// leader is who leads now, and who does not.
func leader(t *testing.T, product *harness.Product) (leads, waits *harness.Process) {
	t.Helper()
	leads, err := court.Leader(t.Context())
	harness.Must(t, err)
	for _, process := range product.Controllers {
		if process != leads {
			waits = process
		}
	}
	return leads, waits
}

// leading waits until a controller leads, and tells how long that took.
func leading(t *testing.T, process *harness.Process, within time.Duration) time.Duration {
	t.Helper()
	began := time.Now()
	for time.Since(began) < within {
		if values, err := process.Metrics(); err == nil && values["configstamp_leader"] == 1 {
			return time.Since(began)
		}
		time.Sleep(every)
	}
	t.Fatalf("%s does not lead after %s\n%s", process.Name, within, process.LogTail(20))
	return 0
}
