package product

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/configstamp/configstamp/e2e/proxy"
)

// Counter counts what the processes of a product ask of the API server, by
// process, verb and resource: "controller patch deployments".
type Counter struct {
	mu     sync.Mutex
	counts Counts
}

// Counts are numbers of requests by what was asked.
type Counts map[string]int

func (c *Counter) see(role string, request *proxy.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts == nil {
		c.counts = Counts{}
	}
	c.counts[role+" "+asked(request)]++
}

// asked names a request. The first page of a LIST and a watch that begins with
// everything there is are told apart from further pages, plain watches,
// questions for the version alone, and whatever is about one object.
func asked(request *proxy.Request) string {
	verb := request.Verb
	switch {
	case strings.HasPrefix(request.Query.Get("fieldSelector"), "metadata.name="):
		verb += "-one"
	case verb == "list" && request.Query.Get("continue") != "":
		verb = "next-page"
	case verb == "list" && request.Query.Get("limit") == "1":
		verb = "version"
	case verb == "watch" && request.Query.Get("sendInitialEvents") == "true":
		verb = "watch-list"
	}
	what := request.Resource
	if what == "" {
		what = request.Path
	}
	if request.DryRun() {
		verb = "dry-run-" + verb
	}
	return verb + " " + what
}

// Counts are those until now.
func (c *Counter) Counts() Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.counts)
}

// Since are the requests since earlier ones.
func (c *Counter) Since(before Counts) Counts {
	since := Counts{}
	for what, count := range c.Counts() {
		if more := count - before[what]; more > 0 {
			since[what] = more
		}
	}
	return since
}

// Without leaves out what keeps a process alive and does no work: the leader's
// lease, and watches that are opened again.
func (c Counts) Without(parts ...string) Counts {
	left := Counts{}
	for what, count := range c {
		if !slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(what, part) }) {
			left[what] = count
		}
	}
	return left
}

// Work leaves out the lease and watches.
func (c Counts) Work() Counts {
	return c.Without(" leases", " watch ", " watch-one ", " watch-list ", " version ", "leader")
}

// Sum is how many they are.
func (c Counts) Sum() (sum int) {
	for _, count := range c {
		sum += count
	}
	return sum
}

// String lists them: 3 × controller patch deployments.
func (c Counts) String() string {
	if len(c) == 0 {
		return "no requests"
	}
	var parts []string
	for _, what := range slices.Sorted(maps.Keys(c)) {
		parts = append(parts, fmt.Sprintf("%d × %s", c[what], what))
	}
	return strings.Join(parts, ", ")
}
