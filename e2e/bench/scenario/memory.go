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

// secretBytes is the size of each of the Secrets that start and memory fill a cluster with.
const secretBytes = 20 << 10

// secrets is how many they are.
func (b *Bench) secrets() int { return b.Size(10_000, 1_000) }

func memory() Scenario {
	return Scenario{
		Name: "memory", Title: "Memory with 10,000 Secrets of 20 KiB",
		Method: "The Secrets are there, each with other content, before the product's processes start, one after the other. Peak is the most memory that a process ever held (VmHWM), " +
			"three seconds after it was ready; the floor is the same with an empty cluster. \"By LIST\": a proxy refuses WatchList, as older API servers do. " +
			"Reads are counted by a proxy in that run and in one more.",
		Run: func(ctx context.Context, b *Bench, r *report.Result) error {
			return (&filled{Bench: b, r: r}).run(ctx)
		},
	}
}

type filled struct {
	*Bench
	r *report.Result
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
	m.Say("creating %d Secrets of %d bytes", m.secrets(), secretBytes)
	if err := m.Secrets(ctx, namespace, m.secrets(), secretBytes); err != nil {
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
				AtMost(report.Max, 12))
			m.r.Add(report.New(role+": start to ready"+mode.name, "s", report.Of(ready[role]...)))
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
