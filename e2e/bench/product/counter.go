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
// everything there is are told apart from further pages, plain watches, and
// questions for the version alone.
func asked(request *proxy.Request) string {
	verb := request.Verb
	switch {
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

// Work leaves out what keeps a process alive and does no work: the leader's
// lease, and watches that are opened again.
func (c Counts) Work() Counts {
	left := maps.Clone(c)
	maps.DeleteFunc(left, func(what string, _ int) bool {
		return slices.ContainsFunc([]string{" leases", " watch ", " watch-list ", " version ", "leader"}, func(part string) bool { return strings.Contains(what, part) })
	})
	return left
}

// Of is how many are about one resource.
func (c Counts) Of(resource string) (sum int) {
	for what, count := range c {
		if strings.HasSuffix(what, " "+resource) {
			sum += count
		}
	}
	return sum
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
