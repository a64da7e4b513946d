package inspect

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/seen"
)

// Reporter is what configstamp's events say who reports them (reportingController).
const Reporter = "configstamp"

// OurEvents reads the events that configstamp's controller has written about workloads,
// sources and Namespaces, newest first. namespace is "" for all.
func (c *Cluster) OurEvents(ctx context.Context, namespace string) ([]seen.Event, error) {
	return c.events(ctx, namespace, "reportingComponent="+Reporter)
}

func (c *Cluster) events(ctx context.Context, namespace, selector string) ([]seen.Event, error) {
	var events []seen.Event
	err := c.each(ctx, query{gvr: v1("", "events"), namespace: namespace, fields: selector}, func(raw []byte) error {
		events = append(events, eventOf(raw))
		return nil
	})
	slices.SortStableFunc(events, func(a, b seen.Event) int { return b.Last.Compare(a.Last) })
	return events, err
}

// eventOf reads an event in the form of core/v1, which may have been written in that of
// events.k8s.io/v1.
func eventOf(raw []byte) seen.Event {
	var event struct {
		Metadata struct {
			Created time.Time `json:"creationTimestamp"`
		} `json:"metadata"`
		Involved struct {
			Kind      string `json:"kind"`
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
			FieldPath string `json:"fieldPath"`
		} `json:"involvedObject"`
		Type      string    `json:"type"`
		Reason    string    `json:"reason"`
		Message   string    `json:"message"`
		Count     int32     `json:"count"`
		First     time.Time `json:"firstTimestamp"`
		Last      time.Time `json:"lastTimestamp"`
		EventTime time.Time `json:"eventTime"`
		Series    struct {
			Count int32     `json:"count"`
			Last  time.Time `json:"lastObservedTime"`
		} `json:"series"`
		Source struct {
			Component string `json:"component"`
		} `json:"source"`
		Reporter string `json:"reportingComponent"`
	}
	_ = unmarshal(raw, &event) // what cannot be read is not told
	first := firstTime(event.First, event.EventTime, event.Metadata.Created)
	return seen.Event{
		Kind: event.Involved.Kind, Namespace: event.Involved.Namespace, Name: event.Involved.Name, About: event.Involved.FieldPath,
		Reason: event.Reason, Message: event.Message, Warning: event.Type == "Warning",
		First: first, Last: firstTime(event.Series.Last, event.Last, first),
		Count: max(event.Count, event.Series.Count, 1), By: cmp.Or(event.Reporter, event.Source.Component),
	}
}

func firstTime(times ...time.Time) time.Time {
	for _, one := range times {
		if !one.IsZero() {
			return one.UTC()
		}
	}
	return time.Time{}
}
