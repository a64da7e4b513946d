package forecast_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/forecast"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

// Where many use what is edited, no turns are foreseen: nothing else may be told otherwise.
func TestBrief_OfManyIsThatOfFew(t *testing.T) {
	changes := []func(*forecast.Workload){
		func(*forecast.Workload) {}, oneKey("greeting"), oneKey("color"), says("mode", "observe"), says("pause", "true"), says("pause", "maybe"), says("window", "22:00-04:00 UTC"),
		says("min-interval", "1h"), says("ignore", "configmap/*"), status(workload.Status{Waits: "it has no replicas"}),
		uses(checksum.Reference{Source: config, Use: checksum.Live, All: true}, checksum.Reference{Source: checksum.Source{Kind: checksum.Secret, Name: "gone"}, Use: checksum.Live, All: true}),
	}
	var all []forecast.Workload
	for n := range 200 {
		w := web(fmt.Sprintf("app-%03d", n), changes[n%len(changes)])
		w.Status.Current = now.Add(-time.Duration(n/2) * time.Minute)
		all = append(all, w)
	}
	brief := func(step int, users []forecast.Workload) forecast.Brief {
		limited := limits()
		limited.Step = step
		return suppose(t, limited, func(source rollout.SourceRef) forecast.Seen {
			return forecast.Seen{Missing: source.Source.Name == "gone"}
		}, edited("greeting"), users...).Brief()
	}
	names := func(refs []workload.Ref) (names []string) {
		for _, ref := range refs {
			names = append(names, ref.Name)
		}
		slices.Sort(names)
		return names
	}
	for _, step := range []int{0, 1, 3} {
		many, few, rest := brief(step, all), brief(step, all[:100]), brief(step, all[100:])
		if got, want := names(many.Rolls), names(append(slices.Clone(few.Rolls), rest.Rolls...)); len(want) < 30 || !slices.Equal(got, want) {
			t.Errorf("%v roll, want %v", got, want)
		}
		if got, want := names(many.Later), names(append(slices.Clone(few.Later), rest.Later...)); len(want) < 3 || !slices.Equal(got, want) {
			t.Errorf("%v are stamped, want %v", got, want)
		}
		maps.Copy(few.Held, rest.Held)
		if len(few.Held) < 10 || !maps.Equal(many.Held, few.Held) {
			t.Errorf("%v are held, want %v", many.Held, few.Held)
		}
		if got, want := fmt.Sprint(many.Stays), fmt.Sprint(append(few.Stays, rest.Stays...)); got != want {
			t.Errorf("%v stay, want %v", got, want)
		}
		if want := step; step > 0 && (many.First != want || few.First != want) {
			t.Errorf("%d and %d go first, want %d", many.First, few.First, want)
		}
		if held := len(many.Held); step == 0 && many.First != len(many.Rolls)-held {
			t.Errorf("%d go first of %d, %d held", many.First, len(many.Rolls), held)
		}
	}
}
