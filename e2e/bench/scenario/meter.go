package scenario

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/configstamp/configstamp/e2e/bench/lab"
)

// meter reads what processes take while something goes on, in windows of time.
type meter struct {
	*Bench
	processes map[string]lab.Cost
	// shares is the CPU of each process by window, in % of a core; ends is when
	// each window ended, in seconds from the begin.
	shares map[string][]float64
	ends   []float64
	// most is the most memory that each process held at the end of a window, MiB.
	most map[string]float64
	// live is the most of the controller's live heap, MiB; 0: it does not tell.
	live float64
}

// meterWindow is over what CPU is averaged.
const meterWindow = 10 * time.Second

// newMeter looks at the product's processes, the cluster's, and this one.
func newMeter(b *Bench) (*meter, error) {
	m := &meter{Bench: b, shares: map[string][]float64{}, most: map[string]float64{}}
	var err error
	if m.processes, err = b.Components(); err != nil {
		return nil, err
	}
	delete(m.processes, "watchdog")
	m.processes["bench"] = lab.Cost{Name: "bench", PID: os.Getpid()}
	for role, process := range b.Product.Processes() {
		m.processes[role] = process.Cost
	}
	return m, nil
}

// during reads until do has ended; each window is told to then.
func (m *meter) during(ctx context.Context, do func(context.Context) error, then func(elapsed time.Duration)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	begin, last := time.Now(), time.Now()
	before, err := m.spent()
	if err != nil {
		return err
	}
	go func() { ended <- do(ctx) }()
	ticks := time.NewTicker(meterWindow)
	defer ticks.Stop()
	for {
		select {
		case err := <-ended:
			if time.Since(last) >= meterWindow/2 {
				_, _ = m.window(ctx, begin, last, before) // what was done is more than its last window
			}
			return err
		case now := <-ticks.C:
			if before, err = m.window(ctx, begin, last, before); err != nil {
				cancel()
				return errors.Join(err, <-ended)
			}
			last = now
			then(now.Sub(begin))
		}
	}
}

// window adds what was taken since the last one.
func (m *meter) window(ctx context.Context, begin, last time.Time, before map[string]float64) (map[string]float64, error) {
	took := time.Since(last)
	now, err := m.spent()
	if err != nil {
		return nil, err
	}
	m.ends = append(m.ends, time.Since(begin).Seconds())
	for name := range now {
		m.shares[name] = append(m.shares[name], 100*(now[name]-before[name])/took.Seconds())
		held, err := m.processes[name].MiB()
		if err != nil {
			return nil, err
		}
		m.most[name] = max(m.most[name], held)
	}
	m.live = max(m.live, liveHeap(ctx, m.Bench))
	return now, nil
}

func (m *meter) spent() (map[string]float64, error) {
	spent := make(map[string]float64, len(m.processes))
	for name, process := range m.processes {
		seconds, err := process.CPU()
		if err != nil {
			return nil, fmt.Errorf("has %s ended? %w", name, err)
		}
		spent[name] = seconds
	}
	return spent, nil
}

// liveHeap is what the controller's last garbage collection left, MiB: the size
// of heap at which the next one begins, without the room that GOGC gives. 0: it
// does not tell.
func liveHeap(ctx context.Context, b *Bench) float64 {
	values, err := b.Product.Metrics(ctx, "controller")
	percent, told := values["go_gc_gogc_percent"]
	if err != nil || !told {
		return 0
	}
	return values["go_memstats_next_gc_bytes"] / (1 + percent/100) / (1 << 20)
}
