package scenario

import (
	"cmp"
	"time"

	"github.com/spf13/pflag"

	"github.com/configstamp/configstamp/e2e/bench/product"
)

// Fleet is what the command line says of the scenario of steps. What is 0 is
// chosen by the size of the run.
type Fleet struct {
	Workloads, Namespaces    int
	Slots, SlotsPerNamespace int
	Soak                     time.Duration
	// Cores is what the API server may use while it is measured; 0: all there are,
	// and each quota that the scenario of overload has.
	Cores float64
}

// Flags adds the flags.
func (f *Fleet) Flags(flags *pflag.FlagSet) {
	flags.IntVar(&f.Workloads, "workloads", 0, "steps: how many Deployments read the source; 0: 10,000, and 300 with --quick")
	flags.IntVar(&f.Namespaces, "namespaces", 1, "steps: over how many namespaces they are spread evenly, each with a ConfigMap of the same name and content")
	flags.DurationVar(&f.Soak, "soak", 0, "steps: how long a rollout has to stay well; 0: 10s, and 2s with --quick")
	flags.IntVar(&f.Slots, "max-unsettled", 0, "steps: how many may roll at once in the cluster; 0: 100, and 20 with --quick")
	flags.IntVar(&f.SlotsPerNamespace, "max-unsettled-per-namespace", 0, "steps: the same in each namespace; 0: nine tenths of --max-unsettled")
	flags.Float64Var(&f.Cores, "apiserver-cores", 0, "steps, overload: so many cores for the API server, such as 0.5, by a cgroup, once all workloads are there; needs root; 0: steps as many as there are, overload one after the other")
}

// fleet fills in what the command line leaves open.
func (b *Bench) fleet() Fleet {
	f := b.Fleet
	f.Workloads = cmp.Or(f.Workloads, b.Size(10_000, 300))
	f.Namespaces = min(max(f.Namespaces, 1), f.Workloads)
	f.Soak = cmp.Or(f.Soak, b.Span(10*time.Second, 2*time.Second))
	f.Slots = max(cmp.Or(f.Slots, b.Size(100, 20)), 1)
	f.SlotsPerNamespace = cmp.Or(f.SlotsPerNamespace, max(f.Slots*9/10, 1))
	return f
}

// settle is how long the product waits after an edit.
const settle = 2 * time.Second

func (f Fleet) steps() *product.Steps {
	return &product.Steps{Settle: settle, Soak: f.Soak, Slots: f.Slots, SlotsPerNamespace: f.SlotsPerNamespace}
}

// width is how many may roll at once, of one change.
func (f Fleet) width() int {
	return min(f.Slots, f.SlotsPerNamespace*f.Namespaces)
}

// batches are the sizes of the steps in which n workloads roll: 1, 2, 4 and so
// on up to width, then width again and again, and the rest.
func batches(n, width int) (sizes []int) {
	for size := 1; n > 0; size = min(2*size, width) {
		sizes = append(sizes, min(size, n))
		n -= size
	}
	return sizes
}

// inTheory is how long it takes from the last edit until the last of n workloads
// has rolled, when a batch of a size takes roll and nothing else takes any time.
// The last batch's soak is not waited for.
func (f Fleet) inTheory(n, width int, roll func(size int) time.Duration) time.Duration {
	sizes := batches(n, width)
	total := settle + time.Duration(len(sizes)-1)*f.Soak
	for _, size := range sizes {
		total += roll(size)
	}
	return total
}
