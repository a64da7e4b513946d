package scenario

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configstamp/configstamp/e2e/bench/lab"
	"github.com/configstamp/configstamp/e2e/bench/report"
)

const handNamespace = "by-hand"

// byHand rolls Deployments that no product cares for, in batches: the floor of
// the scenario of steps.
type byHand struct {
	*Bench
	rollouts *lab.Rollouts
	width, n int

	batch            map[int][]float64  // seconds by size
	rolls            []float64          // seconds of each rollout in a batch
	rate             float64            // all at once, rollouts a second
	cores            map[string]float64 // what each process took meanwhile
	toBound, toReady []time.Duration
}

// fill makes enough Deployments for all steps and three full batches, but no
// more than most.
func (h *byHand) fill(ctx context.Context, most int) error {
	for _, size := range batches(most, h.width) {
		if h.n += size; size == h.width && h.n >= 5*h.width {
			break
		}
	}
	if err := h.Namespace(ctx, handNamespace, nil); err != nil {
		return err
	}
	return lab.Fill(ctx, h.n, func(ctx context.Context, i int) error {
		return h.Create(ctx, lab.Workload{Namespace: handNamespace, Name: fmt.Sprintf("app-%05d", i), Rolling: true})
	})
}

func (h *byHand) measure(ctx context.Context) error {
	h.Say("rolling %d Deployments by hand", h.n)
	births, err := h.Births(ctx, handNamespace)
	if err != nil {
		return err
	}
	defer births.Stop()
	h.batch = map[int][]float64{}
	next := 0
	for _, size := range batches(h.n, h.width) {
		rolls, took, err := h.roll(ctx, "1", next, size)
		if err != nil {
			return err
		}
		next += size
		h.batch[size], h.rolls = append(h.batch[size], took.Seconds()), append(h.rolls, rolls...)
	}
	h.toBound, h.toReady = births.Took()
	return h.atOnce(ctx)
}

// atOnce rolls all of them at the same time, and tells what that costs.
func (h *byHand) atOnce(ctx context.Context) error {
	m, err := newMeter(h.Bench)
	if err != nil {
		return err
	}
	before, err := m.spent()
	if err != nil {
		return err
	}
	_, took, err := h.roll(ctx, "2", 0, h.n)
	if err != nil {
		return err
	}
	h.rate = float64(h.n) / took.Seconds()
	h.cores, err = m.spent()
	for name := range h.cores {
		h.cores[name] = (h.cores[name] - before[name]) / took.Seconds()
	}
	return err
}

// roll rolls size Deployments from number first on, all at once.
func (h *byHand) roll(ctx context.Context, round string, first, size int) (rolls []float64, took time.Duration, err error) {
	begin := time.Now()
	patch := fmt.Appendf(nil, `{"spec":{"template":{"metadata":{"annotations":{"example.com/round":%q}}}}}`, round)
	err = lab.Together(ctx, fanoutClients, size, func(ctx context.Context, i int) error {
		name := fmt.Sprintf("app-%05d", first+i)
		_, err := h.Client.AppsV1().Deployments(handNamespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
		if err != nil {
			return fmt.Errorf("patching Deployment %s/%s: %w", handNamespace, name, err)
		}
		return nil
	})
	if err != nil {
		return nil, 0, err
	}
	err = h.rollouts.Wait(ctx, 10*time.Minute, func() error {
		rolls = rolls[:0]
		for key, of := range h.rollouts.Since(begin) {
			if last := of[len(of)-1]; key.Namespace == handNamespace && !last.Done.IsZero() {
				rolls, took = append(rolls, last.Done.Sub(last.Began).Seconds()), max(took, last.Done.Sub(begin))
			}
		}
		if len(rolls) < size {
			return fmt.Errorf("%d of %d Deployments have rolled by hand", len(rolls), size)
		}
		return nil
	})
	return rolls, took, err
}

// took is how long a batch of a size takes: as one of the same size did, or else
// as one of the next larger size.
func (h *byHand) took(size int) time.Duration {
	nearest := h.width
	for known := range h.batch {
		if known >= size && known < nearest {
			nearest = known
		}
	}
	return time.Duration(report.Of(h.batch[nearest]...).Mean * float64(time.Second))
}

func (h *byHand) figures(r *report.Result) {
	sum, each := 0.0, []string(nil)
	for _, name := range slices.Sorted(maps.Keys(h.cores)) {
		sum += h.cores[name]
		each = append(each, fmt.Sprintf("%s %.2f", name, h.cores[name]))
	}
	r.Add(
		report.New("by hand: from a Pod to its node", "ms", report.Of(report.Milliseconds(h.toBound)...)).Saying("the scheduler's time"),
		report.New("by hand: from its node to ready", "ms", report.Of(report.Milliseconds(h.toReady)...)).Saying("kwok's time"),
		report.New(fmt.Sprintf("by hand: a batch of %d", h.width), "s", report.Of(h.batch[h.width]...)),
		report.One(fmt.Sprintf("by hand: %d at once", h.n), "1/s", h.rate).Saying("the most that Kubernetes' own controllers and kwok can do here"),
		report.One("by hand, at once: CPU of all processes", "cores", sum).Saying("%s", strings.Join(each, ", ")),
	)
}
