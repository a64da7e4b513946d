package scenario

import (
	"context"
	"encoding/json"
	"errors"
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
		Method: "A ConfigMap is edited; from the API server's answer to that until a watch shows another pod template of the one Deployment that uses it. First " +
			"nothing else is there, then 1,000 other workloads. The product acts at once (ours: `--settle=0s --step=off`). Floor, by hand: one GET of the ConfigMap and one PATCH of a Deployment, " +
			"sent after the same answer by a client that knows all it needs, with no webhook in between. The PATCH alone is told beside it, and an empty PATCH through a webhook that decodes nothing and adds one annotation, which is the least that a product of this kind can do. All take turns.",
		Run: func(ctx context.Context, b *Bench, r *report.Result) error {
			return b.Started(ctx, product.Options{Immediate: true}, func() error { return edits(ctx, b, r) })
		},
	}
}

// The namespaces, each with its way from an edit to a template.
const (
	oursEdit  = "edit-ours"
	handEdit  = "edit-by-hand"
	patchEdit = "edit-patch-alone"
	floorEdit = "edit-through-floor"
)

type editing struct {
	*Bench
	r       *report.Result
	raw     *lab.Raw
	watches map[string]*lab.Templates
	edits   int
}

func edits(ctx context.Context, b *Bench, r *report.Result) (err error) {
	e := &editing{Bench: b, r: r, watches: map[string]*lab.Templates{}}
	if e.raw, err = b.Raw(); err != nil {
		return err
	}
	err = errors.Join(b.Product.Namespace(ctx, oursEdit), b.Namespace(ctx, handEdit, nil), b.Namespace(ctx, patchEdit, nil), b.Namespace(ctx, floorEdit, nil))
	if err != nil {
		return err
	}
	floor, err := b.AnnotatingFloor()
	if err != nil {
		return err
	}
	defer floor.Close()
	if err := b.Serve(ctx, floor, floorEdit); err != nil {
		return err
	}
	for _, namespace := range []string{oursEdit, handEdit, patchEdit, floorEdit} {
		workload := b.Product.Workload(lab.Workload{Namespace: namespace, Name: "web-app", Sources: []string{"configmap/web-message"}})
		if err := errors.Join(b.ConfigMap(ctx, namespace, "web-message", "0"), b.Create(ctx, workload)); err != nil {
			return err
		}
		if e.watches[namespace], err = b.Templates(ctx, namespace); err != nil {
			return err
		}
		defer e.watches[namespace].Stop()
	}
	if err := e.measure(ctx, 0); err != nil {
		return err
	}
	others := b.Size(1000, 100)
	if err := b.Others(ctx, oursEdit, others); err != nil {
		return err
	}
	return e.measure(ctx, others)
}

// byHand does what is to be done once an edit is answered.
func (e *editing) byHand(ctx context.Context, namespace, value string) error {
	if namespace == handEdit {
		if _, _, err := e.raw.Do(ctx, "GET", "/api/v1/namespaces/"+namespace+"/configmaps/web-message", jsonType, nil); err != nil {
			return err
		}
	}
	if namespace == floorEdit {
		_, _, err := e.raw.Do(ctx, "PATCH", path(namespace, "web-app"), mergeType, []byte("{}"))
		return err
	}
	patch := fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"example.com/checksum":%q}}}}}`, value)
	_, _, err := e.raw.Do(ctx, "PATCH", path(namespace, "web-app"), mergeType, []byte(patch))
	return err
}

// one edits a ConfigMap, and tells how long it took until its Deployment changed.
func (e *editing) one(ctx context.Context, namespace string) (time.Duration, error) {
	e.edits++
	value := fmt.Sprintf("message %d", e.edits)
	body, err := json.Marshal(map[string]any{"data": map[string]string{"MESSAGE": value}})
	if err != nil {
		return 0, fmt.Errorf("writing an edit: %w", err)
	}
	before := e.watches[namespace].Changes()
	if _, _, err := e.raw.Do(ctx, "PATCH", "/api/v1/namespaces/"+namespace+"/configmaps/web-message", mergeType, body); err != nil {
		return 0, err
	}
	answered := time.Now()
	if namespace != oursEdit {
		if err := e.byHand(ctx, namespace, value); err != nil {
			return 0, err
		}
	}
	progress, err := e.watches[namespace].Wait(ctx, before, 1, 20*time.Second)
	return progress.Last.Sub(answered), err
}

func (e *editing) measure(ctx context.Context, others int) error {
	if err := lab.Pause(ctx, 2*time.Second); err != nil { // what the creations caused is over
		return err
	}
	e.Say("editing beside %d others", others)
	const unmeasured = 3
	took, lost := map[string][]time.Duration{}, 0
	order := []string{patchEdit, handEdit, floorEdit, oursEdit}
	for turn := range e.Size(200, 30) + unmeasured {
		for i := range order {
			namespace := order[(turn+i)%len(order)]
			elapsed, err := e.one(ctx, namespace)
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case err != nil && namespace != oursEdit:
				return err
			case err != nil:
				lost++
			case turn >= unmeasured:
				took[namespace] = append(took[namespace], elapsed)
			}
		}
		if err := lab.Pause(ctx, 30*time.Millisecond); err != nil { // a person's edits do not meet the last one's aftermath
			return err
		}
	}
	name, ours := fmt.Sprintf("edit to template, %d others", others), report.Of(report.Milliseconds(took[oursEdit])...)
	e.r.Add(
		report.New(name, "ms", ours).Over("one GET and one PATCH by hand", report.Of(report.Milliseconds(took[handEdit])...)).AtMost(report.Ratio, 1.15),
		report.New(name+", compared with the PATCH alone", "ms", ours).Over("one PATCH by hand", report.Of(report.Milliseconds(took[patchEdit])...)),
		report.New(name+", compared with an empty PATCH through a webhook that adds one annotation", "ms", ours).Over("that PATCH by hand", report.Of(report.Milliseconds(took[floorEdit])...)),
		report.One(fmt.Sprintf("edits after which nothing changed within 20 s, %d others", others), "edits", float64(lost)).AtMost(report.Max, 0),
	)
	return nil
}
