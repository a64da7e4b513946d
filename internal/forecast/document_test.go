package forecast_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/configstamp/configstamp/internal/forecast"
	"github.com/configstamp/configstamp/internal/rollout"
)

var write = flag.Bool("write", false, "write the table of durations into docs/how-long.md")

// How long a change takes is documented as the plan has it.
func TestDocumented_HowLongAChangeTakes(t *testing.T) {
	const begin, end = "<!-- durations, made by: go test ./internal/forecast -run Documented -write -->\n", "<!-- end of durations -->"
	each := []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute}
	table := "| workloads that use it | steps | each takes 5 s | 30 s | 2 min | 30 s, `--soak=30s` | 30 s, `--step=off` |\n|---|---|---|---|---|---|---|\n"
	for _, users := range []int{1, 3, 10, 50, 1000} {
		steps, cells := 0, []string{}
		for _, usually := range each {
			last, long := takes(t, users, usually, limits())
			steps, cells = last, append(cells, long)
		}
		patient, reckless := limits(), limits()
		patient.Soak, reckless.Step = 30*time.Second, 0
		_, long := takes(t, users, each[1], patient)
		_, once := takes(t, users, each[1], reckless)
		table += fmt.Sprintf("| %d | %d | %s |\n", users, steps, strings.Join(append(cells, long, once), " | "))
	}
	path := filepath.Join("..", "..", "docs", "how-long.md")
	document, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(document), begin)
	was, after, closed := strings.Cut(rest, end)
	switch {
	case !found || !closed:
		t.Fatalf("%s lacks the marks of the table", path)
	case was == table:
	case !*write:
		t.Fatalf("%s says something else than the plan: run this test with -write\n%s", path, table)
	default:
		if err := os.WriteFile(path, []byte(before+begin+table+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// takes foresees an edit of what some workloads use, of 1,000 in the cluster: in how many
// steps they roll, and after how long the last one is healthy.
func takes(t *testing.T, users int, usually time.Duration, limits rollout.Limits) (steps int, long string) {
	t.Helper()
	workloads := thousand()[:users]
	for i := range workloads {
		workloads[i].Usually = usually
	}
	world, err := forecast.Suppose(workloads, func(rollout.SourceRef) forecast.Seen { return forecast.Seen{} })
	if err != nil {
		t.Fatal(err)
	}
	q := forecast.Question{Edits: edited()(world), Now: now, Workloads: world.Workloads, Limits: limits, CanRoll: 1000, Ring: world.Ring, Content: world.Content}
	answer := q.Answer()
	if len(answer.Rolls) != users {
		t.Fatalf("%d of %d roll", len(answer.Rolls), users)
	}
	for _, roll := range answer.Rolls {
		steps = max(steps, roll.Step)
	}
	took := answer.Ends.Sub(now)
	switch {
	case took < 2*time.Minute:
		return steps, fmt.Sprintf("%d s", int(took.Round(time.Second).Seconds()))
	case took < 2*time.Hour:
		return steps, fmt.Sprintf("%d min", int(took.Round(time.Minute).Minutes()))
	}
	return steps, fmt.Sprintf("%.1f h", took.Hours())
}
