package scenario

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/configstamp/configstamp/e2e/bench/lab"
	"github.com/configstamp/configstamp/e2e/bench/product"
	"github.com/configstamp/configstamp/e2e/bench/report"
)

func edit() Scenario {
	return Scenario{
		Name: "edit", Title: "From an edit to a changed template",
		Controllers: workloadControllers(),
		Method: "A ConfigMap is edited; from the API server's answer to that until a watch shows another pod template of the one Deployment that uses it. " +
			"1,000 other workloads are there. The product acts at once (ours: `--settle=0s`). Floor: one GET of the ConfigMap and one PATCH of a Deployment, " +
			"sent after the same answer by a client that knows all it needs, with no webhook in between.",
		Run: func(ctx context.Context, b *Bench, r *report.Result) error {
			return b.Started(ctx, product.Options{Immediate: true}, func() error { return edits(ctx, b, r) })
		},
	}
}

func edits(ctx context.Context, b *Bench, r *report.Result) error {
	const ours, floor = "edit-ours", "edit-floor"
	if err := b.Product.Namespace(ctx, ours); err != nil {
		return err
	}
	if err := b.Namespace(ctx, floor, nil); err != nil {
		return err
	}
	if err := b.Others(ctx, ours, b.Size(1000, 100)); err != nil {
		return err
	}
	raw, err := b.Raw()
	if err != nil {
		return err
	}
	// byHand is what the floor does once an edit is answered.
	byHand := func(value string) error {
		if _, _, err := raw.Do(ctx, "GET", "/api/v1/namespaces/"+floor+"/configmaps/web-message", jsonType, nil); err != nil {
			return err
		}
		patch := fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"example.com/checksum":%q}}}}}`, value)
		_, _, err := raw.Do(ctx, "PATCH", path(floor, "web-app"), mergeType, []byte(patch))
		return err
	}
	took := map[string][]time.Duration{}
	watches := map[string]*lab.Templates{}
	for _, namespace := range []string{ours, floor} {
		if err := b.ConfigMap(ctx, namespace, "web-message", "0"); err != nil {
			return err
		}
		if err := b.Create(ctx, b.Product.Workload(lab.Workload{Namespace: namespace, Name: "web-app", Sources: []string{"configmap/web-message"}})); err != nil {
			return err
		}
		if watches[namespace], err = b.Templates(ctx, namespace); err != nil {
			return err
		}
		defer watches[namespace].Stop()
	}
	if err := lab.Pause(ctx, 2*time.Second); err != nil { // what the creations caused is over
		return err
	}
	b.Say("editing")
	const unmeasured = 3
	turns, lost := b.Size(200, 30), 0
	for turn := range turns + unmeasured {
		for _, namespace := range []string{floor, ours} {
			value := fmt.Sprintf("message %d", turn+1)
			body, err := json.Marshal(map[string]any{"data": map[string]string{"MESSAGE": value}})
			if err != nil {
				return fmt.Errorf("writing an edit: %w", err)
			}
			before := watches[namespace].Changes()
			if _, _, err := raw.Do(ctx, "PATCH", "/api/v1/namespaces/"+namespace+"/configmaps/web-message", mergeType, body); err != nil {
				return err
			}
			answered := time.Now()
			if namespace == floor {
				if err := byHand(value); err != nil {
					return err
				}
			}
			progress, err := watches[namespace].Wait(ctx, before, 1, 20*time.Second)
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case err != nil:
				lost++
			case turn >= unmeasured:
				took[namespace] = append(took[namespace], progress.Last.Sub(answered))
			}
		}
		if err := lab.Pause(ctx, 30*time.Millisecond); err != nil { // a person's edits do not meet the last one's aftermath
			return err
		}
	}
	r.Add(report.New("edit to template", "ms", report.Of(report.Milliseconds(took[ours])...)).
		Over("one GET and one PATCH by hand", report.Of(report.Milliseconds(took[floor])...)).
		AtMost(report.Ratio, 2).AtMost(report.P50, 8).AtMost(report.P99, 20))
	r.Add(report.One("edits after which nothing changed within 20 s", "edits", float64(lost)).AtMost(report.Max, 0))
	return nil
}
