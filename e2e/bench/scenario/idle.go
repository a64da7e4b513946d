package scenario

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/configstamp/configstamp/e2e/bench/lab"
	"github.com/configstamp/configstamp/e2e/bench/product"
	"github.com/configstamp/configstamp/e2e/bench/report"
)

func idle() Scenario {
	return Scenario{
		Name: "idle", Title: "Memory at rest, in an empty cluster",
		Method: "What each process holds (VmRSS) 20 seconds after it worked. Its own pages (RssAnon) are those that no other process shares and the kernel cannot drop; the others are pages of the program's file. " +
			"\"Blank\" is a program that imports all that the product imports and does nothing: the linker leaves out what nobody calls. \"Asleep\" is the product's own program, which sleeps once its packages are initialised.",
		Run: func(ctx context.Context, b *Bench, r *report.Result) error {
			var blank, asleep memories
			if b.Given.Adapter.Name == "configstamp" {
				programs, err := buildNothing(ctx, b.File)
				if err != nil {
					return err
				}
				if blank, err = rest(ctx, b, programs.blank, ""); err != nil {
					return err
				}
				if asleep, err = rest(ctx, b, programs.asleep, sleeping+"=1"); err != nil {
					return err
				}
			}
			resting, err := restingProduct(ctx, b)
			if err != nil {
				return err
			}
			for _, role := range roles(b.Product) {
				resting[role].tell(r, role, blank, asleep)
			}
			return nil
		},
	}
}

// memories are what a process held, in MiB: in all, and of its own. There is one for
// each round.
type memories struct{ all, own []float64 }

func (m *memories) add(cost lab.Cost) error {
	all, err := cost.MiB()
	own, ownErr := cost.OwnMiB()
	m.all, m.own = append(m.all, all), append(m.own, own)
	return errors.Join(err, ownErr)
}

func (m *memories) tell(r *report.Result, role string, blank, asleep memories) {
	all := report.New(role+": memory at rest", "MiB", report.Of(m.all...))
	own := report.New(role+": of that its own pages", "MiB", report.Of(m.own...))
	if len(blank.all) > 0 {
		all.Over("blank", report.Of(blank.all...)).Saying("asleep: %.1f MiB", report.Of(asleep.all...).P50)
		own.Over("blank", report.Of(blank.own...)).Saying("asleep: %.1f MiB", report.Of(asleep.own...).P50)
	}
	r.Add(all.AtMost(report.Max, 28), own)
	if len(blank.all) > 0 {
		r.Add(report.New(role+": more than a blank program", "MiB", report.Of(report.Differences(m.all, blank.all)...)).AtMost(report.P50, 4),
			report.New(role+": more than the program asleep", "MiB", report.Of(report.Differences(m.all, asleep.all)...)),
			report.New(role+": of its own more than a blank program", "MiB", report.Of(report.Differences(m.own, blank.own)...)))
	}
}

// restingProduct is what the processes of the product hold at rest, by role.
func restingProduct(ctx context.Context, b *Bench) (map[string]*memories, error) {
	found := map[string]*memories{}
	for round := range b.Size(3, 1) {
		b.Say("round %d", round+1)
		err := b.Started(ctx, product.Options{}, func() error {
			if err := lab.Pause(ctx, 20*time.Second); err != nil {
				return err
			}
			for role, process := range b.Product.Processes() {
				if found[role] == nil {
					found[role] = &memories{}
				}
				if err := found[role].add(process.Cost); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// rest is what a program holds that does nothing.
func rest(ctx context.Context, b *Bench, binary, environment string) (m memories, err error) {
	for range b.Size(3, 1) {
		process, err := lab.Start("nothing", b.File("nothing.log"), binary, nil, []string{environment})
		if err != nil {
			return m, err
		}
		err = errors.Join(lab.Pause(ctx, 2*time.Second), m.add(process.Cost), process.Stop())
		if err != nil {
			return m, fmt.Errorf("measuring a program that does nothing: %w", err)
		}
	}
	return m, nil
}
