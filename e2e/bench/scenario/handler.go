package scenario

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"

	"github.com/configstamp/configstamp/e2e/bench/report"
	"github.com/configstamp/configstamp/e2e/harness"
)

func handler() Scenario {
	return Scenario{
		Name: "handler", Title: "The handler alone", Bare: true,
		Method: "`go test -bench BenchmarkAdmit ./webhook`: a review of a Deployment of 20 KB with ten sources is read, decided on and answered, " +
			"without TLS, TCP and API server. Each value is the mean of one run of the benchmark.",
		Run: func(ctx context.Context, b *Bench, r *report.Result) error {
			if b.Given.Adapter.Name != "configstamp" {
				r.Skip("the handler of %s has no benchmark here: it is another project's code", b.Given.Adapter.Name)
				return nil
			}
			root, err := harness.Root()
			if err != nil {
				return err
			}
			command := exec.CommandContext(ctx, "go", "test", "-p", "1", "-run", "^$", "-bench", "^BenchmarkAdmit$", "-benchmem",
				"-count", strconv.Itoa(b.Size(6, 2)), "./webhook")
			command.Dir = root
			out, err := command.CombinedOutput()
			if err != nil {
				return fmt.Errorf("running the benchmark of the handler: %w\n%s", err, out)
			}
			times, allocations := benchmarks(string(out))
			for _, name := range names(times) {
				took := report.New(name+": time", "ms", report.Of(times[name]...))
				allocated := report.New(name+": allocations", "", report.Of(allocations[name]...))
				r.Add(took.AtMost(report.P50, 0.2), allocated.AtMost(report.P50, 200))
			}
			if len(times) == 0 {
				return fmt.Errorf("reading what the benchmark printed: there is no BenchmarkAdmit in\n%s", out)
			}
			return nil
		},
	}
}

var benchmarkLine = regexp.MustCompile(`(?m)^BenchmarkAdmit/(\S+?)(?:-\d+)?\s+\d+\s+([\d.]+) ns/op.*\s(\d+) allocs/op`)

// benchmarks reads milliseconds and allocations from what go test prints.
func benchmarks(text string) (times, allocations map[string][]float64) {
	times, allocations = map[string][]float64{}, map[string][]float64{}
	for _, match := range benchmarkLine.FindAllStringSubmatch(text, -1) {
		nanoseconds, timeErr := strconv.ParseFloat(match[2], 64)
		count, countErr := strconv.ParseFloat(match[3], 64)
		if timeErr != nil || countErr != nil {
			continue
		}
		times[match[1]] = append(times[match[1]], nanoseconds/1e6)
		allocations[match[1]] = append(allocations[match[1]], count)
	}
	return times, allocations
}

func names(of map[string][]float64) []string {
	var all []string
	for name := range of {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}
