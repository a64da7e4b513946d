package scenario

import (
	"context"
	"errors"
	"time"

	"github.com/configstamp/configstamp/e2e/bench/lab"
	"github.com/configstamp/configstamp/e2e/bench/product"
	"github.com/configstamp/configstamp/e2e/bench/report"
)

func idle() Scenario {
	return Scenario{
		Name: "idle", Title: "Memory at rest, in an empty cluster",
		Method: "What each process holds (VmRSS) 20 seconds after it worked. Its own pages (RssAnon) are those that no other process shares and the kernel cannot drop; the others are pages of the program's file.",
		Run: func(ctx context.Context, b *Bench, r *report.Result) error {
			resting, err := restingProduct(ctx, b)
			if err != nil {
				return err
			}
			for _, role := range roles(b.Product) {
				r.Add(report.New(role+": memory at rest", "MiB", report.Of(resting[role].all...)).AtMost(report.Max, 28),
					report.New(role+": of that its own pages", "MiB", report.Of(resting[role].own...)))
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
