package inspect

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/seen"
	"github.com/configstamp/configstamp/internal/workload"
)

// askWithin bounds one question: the API server gives all webhooks together half a minute
// at most, and a person waits.
const askWithin = 15 * time.Second

// Ask asks the webhook what a rolling re-admission of each workload would come to, by a
// server-side dry run: nothing is changed. Workloads of which the answer must be the same
// are asked for once. Whatever goes wrong is an outcome of code Unknown that says what.
//
// answered, unless nil, is called as answers come, one call at a time, with how many
// questions have been answered of how many.
func (c *Cluster) Ask(ctx context.Context, workloads []*seen.Workload, answered func(done, of int)) map[workload.Ref]seen.Outcome {
	groups := map[string][]*seen.Workload{}
	var order []string
	outcomes := make(map[workload.Ref]seen.Outcome, len(workloads))
	for _, w := range workloads {
		if w.Kind.CreateOnly {
			outcomes[w.Ref] = seen.UnknownForGood("the webhook looks at such an object only when it is created")
			continue
		}
		key := question(w)
		if groups[key] == nil {
			order = append(order, key)
		}
		groups[key] = append(groups[key], w)
	}
	var mu sync.Mutex
	done := 0
	// No question ends the others: the error is always nil.
	_ = inParallel(ctx, order, func(ctx context.Context, key string) error {
		outcome := c.ask(ctx, groups[key][0])
		mu.Lock()
		defer mu.Unlock()
		for _, w := range groups[key] {
			outcomes[w.Ref] = outcome
		}
		if done++; answered != nil {
			answered(done, len(order))
		}
		return nil
	})
	return outcomes
}

// AskNamespaces asks the webhook, once for each namespace, whether it serves workloads there that no
// label opts in, as the flag --namespaces says, and notes the answer in namespaces.
func (c *Cluster) AskNamespaces(ctx context.Context, settings *seen.Settings, namespaces map[string]seen.Namespace, workloads []*seen.Workload) {
	examples, said := map[string]*seen.Workload{}, map[string]seen.Outcome{}
	for _, w := range workloads {
		if w.Kind.CreateOnly || !settings.Hinges(w, namespaces[w.Namespace]) {
			continue
		}
		if answer, known := c.said.Load(w.Namespace); known {
			said[w.Namespace] = answer.(seen.Outcome) //nolint:forcetypeassert // nothing else is stored
		} else if examples[w.Namespace] == nil {
			examples[w.Namespace] = w
		}
	}
	for ref, outcome := range c.Ask(ctx, slices.Collect(maps.Values(examples)), nil) {
		if said[ref.Namespace] = outcome; outcome.Code != seen.Unknown || outcome.Cause != seen.OtherCause {
			c.said.Store(ref.Namespace, outcome)
		}
	}
	for name, outcome := range said {
		n := namespaces[name]
		switch outcome.Code {
		case seen.OptedOut, seen.Declined:
		case seen.Unknown:
			n.Unasked = outcome.Cause != seen.Silence
		default:
			n.Listed = true
		}
		namespaces[name] = n
	}
}

// largeAnnotations is from how many bytes on the size of an object's annotations may count
// for the answer, too.
const largeAnnotations = 64 << 10

// question is the same for workloads of which the answer is the same: those of one
// namespace and kind that reference the same, are under the same policy, and have the same
// on record.
func question(w *seen.Workload) string {
	object := w.Object
	size := 0
	for _, annotations := range []map[string]string{object.Annotations, object.TemplateAnnotations()} {
		for key, value := range annotations {
			size += len(key) + len(value)
		}
	}
	own := "" // whatever is special is asked for by itself
	if w.Foreign != nil || w.Fault != "" || w.Owned || size > largeAnnotations {
		own = w.Name
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s %s %q %q %v %v %v %q %q", w.Kind, w.Namespace, own, object.Labels[checksum.InjectLabel], object.DeletionTimestamp != nil,
		checksum.SettingsOf(object.Annotations), w.Records.Stamps, checksum.FormatBaseline(w.Records.Baseline), w.Records.Declined)
	for _, reference := range checksum.Joined(w.References) {
		fmt.Fprintf(&text, " %+v", reference)
	}
	return text.String()
}

// ask asks for one workload.
func (c *Cluster) ask(ctx context.Context, w *seen.Workload) seen.Outcome {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	q := query{gvr: w.Kind.GroupVersionResource(), namespace: w.Namespace, name: w.Name}
	result := c.client.Patch(types.MergePatchType).AbsPath(q.path()).
		Param("dryRun", "All").Param("fieldManager", checksum.RollingManager).
		SetHeader("Accept", asMetadata).Body([]byte("{}")).Do(ctx)
	if err := result.Error(); err != nil {
		return Refused(w.Namespace, err)
	}
	var texts []string
	for _, warning := range result.Warnings() {
		texts = append(texts, warning.Text)
	}
	outcome := seen.OutcomeIn(texts)
	if outcome.Code == seen.Unknown {
		return seen.UnknownBecause("the webhook said nothing: it is stopped, or cannot be reached, or does not look at this namespace (kubectl configstamp doctor looks for it)").By(seen.Silence)
	}
	return outcome
}

// Refused is the outcome of a dry run in a namespace that the API server refused, or did not answer.
func Refused(namespace string, err error) seen.Outcome {
	var transport *url.Error
	switch {
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), " cannot patch resource "): // else an admission webhook or policy denies it
		return seen.UnknownForGood(fmt.Sprintf("you have no right to patch workloads in namespace %s, and the webhook is asked by a patch (as a dry run, which changes nothing)", namespace)).By(seen.NoRight)
	case strings.Contains(err.Error(), "does not support dry run"):
		return seen.UnknownForGood("another webhook refuses dry runs: " + apiText(err)).By(seen.NoDryRun)
	case strings.Contains(err.Error(), "failed calling webhook"):
		return seen.UnknownBecause("the API server could not call a webhook: " + apiText(err)).By(seen.NotCalled)
	case apierrors.IsNotFound(err):
		return seen.UnknownBecause("it was deleted meanwhile")
	case apierrors.IsTimeout(err), apierrors.IsServerTimeout(err), errors.Is(err, context.DeadlineExceeded):
		return seen.UnknownBecause(fmt.Sprintf("the API server gave no answer within %s", askWithin))
	case errors.As(err, &transport):
		return seen.UnknownBecause("the API server cannot be reached: " + transport.Err.Error())
	}
	if strings.Contains(err.Error(), "admission webhook") && strings.Contains(err.Error(), "denied the request") {
		return seen.UnknownBecause("another webhook refuses the dry run: " + apiText(err))
	}
	return seen.UnknownBecause("the API server refuses the dry run: " + apiText(err))
}

// apiText is what the API server said, on one line.
func apiText(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
