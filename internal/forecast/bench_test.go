package forecast_test

import (
	"fmt"
	"testing"

	"github.com/configstamp/configstamp/internal/forecast"
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

func benchmark(b *testing.B, users int) *forecast.Question {
	b.Helper()
	world, err := forecast.Suppose(many(users), func(rollout.SourceRef) forecast.Seen { return forecast.Seen{} })
	if err != nil {
		b.Fatal(err)
	}
	return &forecast.Question{Edits: edited()(world), Now: now, Workloads: world.Workloads, Limits: limits(), CanRoll: 10_000, Ring: world.Ring, Content: world.Content}
}
