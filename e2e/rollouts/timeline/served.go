package timeline

import (
	"maps"
	"slices"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// Unserved lists every span after a moment in which a Service (namespace/name)
// had no ready endpoint, as the watch of its EndpointSlices told; one that had
// none at that moment is among them.
func (e Events) Unserved(since Since, services ...string) []Span {
	ready := map[string]map[string]int{} // by Service, by slice
	for _, service := range services {
		ready[service] = map[string]int{}
	}
	open, closed := map[string]Span{}, []Span{}
	began := false
	begin := func() {
		for _, service := range services {
			if sum(ready[service]) == 0 {
				open[service] = Span{Name: service, From: e.at(since)}
			}
		}
		began = true
	}
	for _, event := range e {
		if !began && event.Version > int64(since) {
			begin()
		}
		if event.Object.GetKind() != "EndpointSlice" {
			continue
		}
		slice := read[discoveryv1.EndpointSlice](event.Object)
		service := slice.Namespace + "/" + slice.Labels[discoveryv1.LabelServiceName]
		if ready[service] == nil {
			continue
		}
		ready[service][slice.Name] = 0
		if event.Type != watch.Deleted {
			ready[service][slice.Name] = readyIn(slice)
		}
		if !began {
			continue
		}
		span, unserved := open[service]
		switch none := sum(ready[service]) == 0; {
		case none && !unserved:
			open[service] = Span{Name: service, From: event.Seen}
		case !none && unserved:
			span.To = event.Seen
			closed = append(closed, span)
			delete(open, service)
		}
	}
	if !began {
		begin()
	}
	closed = append(closed, slices.Collect(maps.Values(open))...)
	slices.SortFunc(closed, func(a, b Span) int { return a.From.Compare(b.From) })
	return closed
}

// at is when the last before a moment was seen, or the first of all.
func (e Events) at(since Since) (seen time.Time) {
	for _, event := range e {
		if seen.IsZero() || event.Version <= int64(since) {
			seen = event.Seen
		}
	}
	return seen
}

func readyIn(slice *discoveryv1.EndpointSlice) int {
	ready := 0
	for _, endpoint := range slice.Endpoints {
		if endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready { // nil: unknown, to be taken for ready
			ready++
		}
	}
	return ready
}

func sum(counts map[string]int) int {
	total := 0
	for _, count := range counts {
		total += count
	}
	return total
}
