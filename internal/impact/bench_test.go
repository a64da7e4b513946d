package impact_test

import (
	"fmt"
	"testing"

	"github.com/configstamp/configstamp/internal/impact"
	"github.com/configstamp/configstamp/internal/rollout"
)

// What an admission warning costs, and what the plugin shows.
func BenchmarkAnswer(b *testing.B) {
	for _, users := range []int{1, 50, 1000} {
		q := benchmark(b, users)
		b.Run(fmt.Sprintf("%d", users), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if answer := q.Answer(); len(answer.Rolls) != users {
					b.Fatal(len(answer.Rolls))
				}
			}
		})
	}
}

func benchmark(b *testing.B, users int) *impact.Question {
	b.Helper()
	world, err := impact.Suppose(many(users), func(rollout.SourceRef) impact.Seen { return impact.Seen{} })
	if err != nil {
		b.Fatal(err)
	}
	return &impact.Question{Edits: edited()(world), Now: now, Workloads: world.Workloads, Limits: limits(), CanRoll: 10_000, Ring: world.Ring, Content: world.Content}
}
