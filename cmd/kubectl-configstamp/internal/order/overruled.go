package order

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/seen"
	"github.com/configstamp/configstamp/internal/reason"
)

// Overruled are the workloads of a Namespace that go on rolling in spite of a pause that is
// written on it: their own annotation counts for more. until is the end of the pause, zero
// for none.
func Overruled(settings *seen.Settings, namespace seen.Namespace, workloads []*seen.Workload, value string, now time.Time) []string {
	var goOn []string
	wanted, _ := pauseIn(value)
	namespace.Settings = maps.Clone(namespace.Settings)
	if namespace.Settings == nil {
		namespace.Settings = map[string]string{}
	}
	namespace.Settings[pauseKey] = value
	for _, w := range workloads {
		if standing, _ := settings.Serves(w, namespace); standing == seen.NotServed {
			continue
		}
		policy := settings.PolicyOf(w, namespace, nil)
		if origin, _ := policy.OriginOf(reason.Paused.String()); origin == checksum.OfWorkload && !outlasts(policy.Pause, wanted, now) {
			goOn = append(goOn, fmt.Sprintf("%s -n %s: its own %s=%s", w.Text(), w.Namespace, pauseKey, w.Object.Annotations[pauseKey]))
		}
	}
	return goOn
}

// Own are the workloads that have a pause of their own, in words that say who set it.
func Own(settings *seen.Settings, namespace seen.Namespace, workloads []*seen.Workload, now time.Time) []string {
	var own []string
	for _, w := range workloads {
		value, set := w.Object.Annotations[pauseKey]
		pause, readable := pauseIn(value)
		standing, _ := settings.Serves(w, namespace)
		if !set || standing == seen.NotServed || readable && !outlasts(pause, checksum.Pause{On: true, Until: now}, now) {
			continue
		}
		text := fmt.Sprintf("%s -n %s: its own %s=%s", w.Text(), w.Namespace, pauseKey, value)
		if mine := noteOf(w.Object.Annotations); mine != nil {
			text += ", paused" + mine.Words()
		}
		own = append(own, text)
	}
	return own
}

// PauseOf is what stands in configstamp.dev/pause after each of some orders, "" where it is
// not by an order.
func PauseOf(dids []Did) []string {
	values := make([]string, len(dids))
	for i := range dids {
		if dids[i].Result == Paused {
			values[i] = strings.TrimPrefix(dids[i].Wrote, pauseKey+"=")
		}
	}
	return values
}

// IsPaused reports whether annotations have a pause, whoever wrote it, or a note of one.
func IsPaused(annotations map[string]string) bool {
	value, set := annotations[pauseKey]
	_, noted := annotations[checksum.PausedByAnnotation]
	return noted || set && value != "false"
}

// OptedInLabel is the label selector of what opts in by itself.
const OptedInLabel = checksum.InjectLabel + "=" + checksum.InjectEnabled

// OptedIn are the names of the namespaces in which something is opted in, sorted: by their
// own label, or by that of one of some workloads.
func OptedIn(settings *seen.Settings, namespaces map[string]seen.Namespace, workloads []*seen.Workload) []string {
	found := map[string]bool{}
	for name, namespace := range namespaces {
		if settings.OptsIn(name, namespace) {
			found[name] = true
		}
	}
	for _, w := range workloads {
		if standing, _ := settings.Serves(w, namespaces[w.Namespace]); standing == seen.Served {
			found[w.Namespace] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}
