package scenario

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/configstamp/configstamp/e2e/bench/lab"
	"github.com/configstamp/configstamp/e2e/bench/product"
	"github.com/configstamp/configstamp/e2e/bench/report"
)

// sources are the Secrets of a scenario, and what a process may take with them.
type sources struct {
	n, bytes  int
	mostMore  float64 // MiB, more than with an empty cluster
	mostReady float64 // seconds from start to ready; 0: no bound
}

func memoryOfLarge() Scenario {
	return memory("memory-large", "Memory with 10,000 Secrets of 20 KiB", sources{n: 10_000, bytes: 20 << 10, mostMore: 12})
}

func memoryOfMany() Scenario {
	return memory("memory-many", "Memory and start with 100,000 Secrets of 2 KiB", sources{n: 100_000, bytes: 2 << 10, mostMore: 56, mostReady: 8})
}

func memory(name, title string, s sources) Scenario {
	return Scenario{
		Name: name, Title: title,
		Method: "The Secrets are there, each with other content, before the product's processes start, one after the other. Peak is the most memory that a process ever held (VmHWM), " +
			"three seconds after it was ready; the floor is the same with an empty cluster. \"By LIST\": a proxy refuses WatchList, as older API servers do. " +
			"Reads are counted by a proxy in that run and in one more.",
		Run: func(ctx context.Context, b *Bench, r *report.Result) error {
			m := &filled{Bench: b, r: r, sources: s}
			return m.run(ctx)
		},
	}
}

type filled struct {
	*Bench
	r *report.Result
	sources
}

func (m *filled) run(ctx context.Context) error {
	const namespace = "filled"
	empty, _, err := measureStart(ctx, m.Bench, product.Options{})
	if err != nil {
		return err
	}
	if err := m.Product.Namespace(ctx, namespace); err != nil {
		return err
	}
	m.n /= m.Size(1, 10)
	m.Say("creating %d Secrets of %d bytes", m.n, m.bytes)
	if err := m.Secrets(ctx, namespace, 0, m.n, m.bytes); err != nil {
		return err
	}
	for _, mode := range []struct {
		name    string
		options product.Options
		rounds  int
	}{
		{"", product.Options{}, m.Size(3, 1)},
		{", by LIST", product.Options{Counted: true, Listing: true}, 1},
		{", counted", product.Options{Counted: true}, 1},
	} {
		peaks, ready := map[string][]float64{}, map[string][]float64{}
		for range mode.rounds {
			m.Say("starting%s", mode.name)
			before := m.Product.Counter.Counts()
			peak, after, err := measureStart(ctx, m.Bench, mode.options)
			if err != nil {
				return err
			}
			for role := range peak {
				peaks[role], ready[role] = append(peaks[role], peak[role]), append(ready[role], after[role])
			}
			if mode.options.Counted {
				m.reads(mode.name, m.Product.Counter.Since(before), mode.options.Listing)
			}
		}
		for _, role := range roles(m.Product) {
			m.r.Add(report.New(role+": peak memory"+mode.name, "MiB", report.Of(peaks[role]...)).
				Over("the same with an empty cluster", report.Of(empty[role])))
			m.r.Add(report.New(role+": peak memory, more than with an empty cluster"+mode.name, "MiB", report.Of(report.Differences(peaks[role], slices.Repeat([]float64{empty[role]}, len(peaks[role])))...)).
				AtMost(report.Max, m.mostMore))
			start := report.New(role+": start to ready"+mode.name, "s", report.Of(ready[role]...))
			if m.mostReady > 0 && !mode.options.Counted {
				start.AtMost(report.P50, m.mostReady)
			}
			m.r.Add(start)
		}
	}
	return nil
}

// measureStart starts the product, waits until it works, and tells by process the
// peak in MiB and the seconds until it was ready.
func measureStart(ctx context.Context, b *Bench, o product.Options) (peak, ready map[string]float64, err error) {
	peak, ready = map[string]float64{}, map[string]float64{}
	err = func() error {
		for _, role := range roles(b.Product) {
			if err := b.Product.StartRole(ctx, role, o); err != nil {
				return err
			}
			took, err := b.Product.WaitReady(ctx, role)
			if err != nil {
				return err
			}
			ready[role] = took.Seconds()
		}
		if err := b.Product.Work(ctx); err != nil {
			return err
		}
		if err := lab.Pause(ctx, 3*time.Second); err != nil {
			return err
		}
		for role, process := range b.Product.Processes() {
			if peak[role], err = process.PeakMiB(); err != nil {
				return err
			}
		}
		return nil
	}()
	return peak, ready, errors.Join(err, b.Product.Stop())
}

// reads counts how often everything was read, pages and versions aside. Where
// WatchList is refused, asking for it reads nothing.
func (m *filled) reads(mode string, counts product.Counts, refused bool) {
	whole, pages := 0, 0
	for what, count := range counts {
		if !strings.HasSuffix(what, " secrets") {
			continue
		}
		_, verb, _ := strings.Cut(what, " ")
		switch verb, _, _ = strings.Cut(verb, " "); verb {
		case "watch-list":
			if !refused {
				whole += count
			}
		case "list":
			whole += count
		case "next-page":
			pages += count
		}
	}
	m.r.Add(report.One(fmt.Sprintf("reads of all Secrets, for each process%s", mode), "reads", float64(whole)/float64(len(roles(m.Product)))).
		AtMost(report.Max, 1).Saying("LISTs of whole objects and watches that begin with them; %d further pages", pages))
}
