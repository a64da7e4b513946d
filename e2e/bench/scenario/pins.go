package scenario

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/e2e/bench/lab"
	"github.com/configstamp/configstamp/e2e/bench/product"
	"github.com/configstamp/configstamp/e2e/bench/report"
)

func pinnedPods() Scenario {
	return Scenario{
		Name: "pins-pods", Title: "The creation of a Pod that is pinned",
		Controllers: workloadControllers(),
		Method: "Dry-run creations of a Pod, in turns without any webhook, with one that decodes nothing and adds one annotation (a process of its own, behind the same TLS server), and with the product's, which gives the Pod's references " +
			"the names of snapshots. \"Added\" is a creation less the one without a webhook of the same turn. Then 1,000 Pods at once by 64 clients, in each of the three ways. " +
			"In rows with a quarter of a core, the API server and etcd have that each.",
		Run: func(ctx context.Context, b *Bench, r *report.Result) error {
			p, err := newPinning(ctx, b, r)
			if p == nil || err != nil {
				return err
			}
			return errors.Join(b.Started(ctx, product.Options{Pins: true}, func() error { return p.measure(ctx) }), p.floor.Stop())
		},
	}
}

// The namespaces, each with its way of admission.
const (
	plainPods = "pins-plain"
	floorPods = "pins-floor"
	oursPods  = "pins-ours"
)

func waysOfPods() []string { return []string{plainPods, floorPods, oursPods} }

// podPins measures the creation of Pods.
type podPins struct {
	*Bench
	r      *report.Result
	raw    *lab.Raw
	floor  *lab.Process
	bodies map[string]map[int][]byte // by namespace, and number of references
}

// newPinning makes the namespaces; nil if the product does not pin.
func newPinning(ctx context.Context, b *Bench, r *report.Result) (p *podPins, err error) {
	if b.Given.Adapter.Pins == nil {
		r.Skip("%s gives pods what is there, and nothing else", b.Given.Adapter.Name)
		return nil, nil
	}
	p = &podPins{Bench: b, r: r, bodies: map[string]map[int][]byte{}}
	if p.raw, err = b.Raw(); err != nil {
		return nil, err
	}
	if err := b.Product.Pins(ctx); err != nil {
		return nil, err
	}
	if err := errors.Join(b.Namespace(ctx, plainPods, nil), b.Namespace(ctx, floorPods, nil), b.pinningNamespace(ctx, oursPods)); err != nil {
		return nil, err
	}
	for _, namespace := range waysOfPods() {
		err := lab.Until(ctx, "Pods to be admitted in "+namespace, time.Minute, func(ctx context.Context) error {
			_, err := b.Client.CoreV1().Pods(namespace).Create(ctx, lab.Workload{Namespace: namespace, Name: "probe"}.Pod(), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	p.floor, err = b.AnnotatePods(ctx, floorPods)
	return p, err
}

// pinning runs measure with the product started so that it pins, or skips what cannot.
func (b *Bench) pinning(ctx context.Context, r *report.Result, o product.Options, measure func() error) error {
	if b.Given.Adapter.Pins == nil {
		r.Skip("%s gives pods what is there, and nothing else", b.Given.Adapter.Name)
		return nil
	}
	if err := b.Product.Pins(ctx); err != nil {
		return err
	}
	o.Pins = true
	return b.Started(ctx, o, measure)
}

// pinningNamespace makes a namespace whose workloads the product pins.
func (b *Bench) pinningNamespace(ctx context.Context, name string) error {
	if err := b.Product.Namespace(ctx, name); err != nil {
		return err
	}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"true"}}}`, "configstamp.dev/pin")
	if _, err := b.Client.CoreV1().Namespaces().Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("having workloads of %s pinned: %w", name, err)
	}
	return nil
}

// pinnedDeployment creates one that uses ConfigMaps of its own, new or known ones, and waits until
// the webhook pins all of them.
func (b *Bench) pinnedDeployment(ctx context.Context, namespace string, references int) (d *appsv1.Deployment, err error) {
	w := lab.Workload{Namespace: namespace, Name: fmt.Sprintf("app-%d", references)}
	for i := range references {
		name := fmt.Sprintf("%s-settings-%d", w.Name, i)
		w.Sources = append(w.Sources, "configmap/"+name)
		if err := b.ConfigMap(ctx, namespace, name, strings.Repeat("v", 2<<10)); err != nil {
			return nil, err
		}
	}
	deployments := b.Client.AppsV1().Deployments(namespace)
	err = lab.Until(ctx, "a Deployment to be pinned", time.Minute, func(ctx context.Context) error {
		if d, err = deployments.Create(ctx, w.Deployment(), metav1.CreateOptions{}); err != nil {
			return err
		}
		pins, err := checksum.ParsePins(d.Spec.Template.Annotations[checksum.PinsAnnotation])
		if err == nil && len(pins) == references {
			return nil
		}
		return errors.Join(fmt.Errorf("%d of its sources are pinned, want %d", len(pins), references), err, deployments.Delete(ctx, d.Name, metav1.DeleteOptions{}))
	})
	return d, err
}

// references are how many each Pod has.
func references() []int { return []int{1, 6} }

func (p *podPins) measure(ctx context.Context) error {
	for _, namespace := range waysOfPods() {
		p.bodies[namespace] = map[int][]byte{}
	}
	for _, n := range references() {
		d, err := p.pinnedDeployment(ctx, oursPods, n)
		if err != nil {
			return err
		}
		for _, namespace := range waysOfPods() {
			pod := lab.PodOf(d)
			pod.Namespace = namespace
			if namespace != oursPods { // as many bytes, and no webhook of ours
				pod.Annotations["configstamp.example/pins"] = pod.Annotations[checksum.PinsAnnotation]
				delete(pod.Annotations, checksum.PinsAnnotation)
			}
			if p.bodies[namespace][n], err = json.Marshal(pod); err != nil {
				return fmt.Errorf("writing a Pod: %w", err)
			}
		}
	}
	for _, cores := range []float64{0, 0.25} {
		err := p.Throttle(cores, lab.ControlPlane()...)
		if errors.Is(err, lab.ErrNoQuota) {
			p.r.Skip("%v of a core: %v", cores, err)
			continue
		}
		if err == nil {
			err = p.rows(ctx, cores)
		}
		if err := errors.Join(err, p.Throttle(0, lab.ControlPlane()...)); err != nil {
			return err
		}
	}
	return nil
}

func (p *podPins) rows(ctx context.Context, cores float64) error {
	suffix, turns := "", p.Size(1000, 100)
	if cores > 0 {
		suffix, turns = fmt.Sprintf(", %v of a core", cores), p.Size(200, 40)
	}
	for _, n := range references() {
		if err := p.one(ctx, fmt.Sprintf("references: %d%s", n, suffix), n, turns); err != nil {
			return err
		}
	}
	return p.atOnce(ctx, suffix, p.Size(3, 1))
}

// create sends one Pod, and tells whether it was pinned.
func (p *podPins) create(ctx context.Context, namespace string, references int, query string) (time.Duration, bool, error) {
	answer, took, err := p.raw.Do(ctx, "POST", "/api/v1/namespaces/"+namespace+"/pods"+query, jsonType, p.bodies[namespace][references])
	return took, strings.Contains(string(answer), `"`+checksum.PinnedAnnotation+`"`), err
}

// one creates one Pod after the other.
func (p *podPins) one(ctx context.Context, row string, references, turns int) error {
	p.Say("%s", row)
	took, order, unpinned := map[string][]float64{}, waysOfPods(), 0.0
	for turn := range turns + 2 {
		for i := range order {
			namespace := order[(turn+i)%len(order)]
			elapsed, pinned, err := p.create(ctx, namespace, references, "?dryRun=All")
			if err != nil {
				return err
			}
			if turn >= 2 { // the first ones open connections
				took[namespace] = append(took[namespace], float64(elapsed)/float64(time.Millisecond))
			}
			if namespace == oursPods && !pinned {
				unpinned++
			}
		}
	}
	added := func(namespace string) report.Spread {
		return report.Of(report.Differences(took[namespace], took[plainPods])...)
	}
	p.r.Add(
		report.New(row+": creation without a webhook", "ms", report.Of(took[plainPods]...)),
		report.New(row+": creation", "ms", report.Of(took[oursPods]...)).Over("with a webhook that adds one annotation", report.Of(took[floorPods]...)),
		report.New(row+": added", "ms", added(oursPods)).Over("what is added by a webhook that adds one annotation", added(floorPods)).AtMost(report.Ratio, 1.5),
		report.One(row+": Pods that were not pinned", "pods", unpinned).AtMost(report.Max, 0),
	)
	return nil
}

// crowdOfPods are created at once, by so many clients.
const (
	crowdOfPods  = 1000
	crowdClients = 64
)

// atOnce creates many Pods at the same moment.
func (p *podPins) atOnce(ctx context.Context, suffix string, rounds int) error {
	took, unpinned := map[string][]float64{}, []float64{}
	for round := range rounds {
		for i := range waysOfPods() {
			namespace := waysOfPods()[(round+i)%len(waysOfPods())]
			p.Say("%d Pods at once%s: %s", crowdOfPods, suffix, namespace)
			pinned := make([]bool, crowdOfPods)
			begin := time.Now()
			err := lab.Together(ctx, crowdClients, crowdOfPods, func(ctx context.Context, n int) (err error) {
				_, pinned[n], err = p.create(ctx, namespace, 1, "")
				return err
			})
			if err != nil {
				return err
			}
			took[namespace] = append(took[namespace], time.Since(begin).Seconds())
			if namespace == oursPods {
				unpinned = append(unpinned, float64(crowdOfPods-countTrue(pinned)))
			}
			if err := p.clear(ctx, namespace); err != nil {
				return err
			}
		}
	}
	name := fmt.Sprintf("%d Pods at once%s", crowdOfPods, suffix)
	p.r.Add(
		report.New(name+": without a webhook", "s", report.Of(took[plainPods]...)),
		report.New(name, "s", report.Of(took[oursPods]...)).Over("with a webhook that adds one annotation", report.Of(took[floorPods]...)),
		report.New(name+": of these not pinned", "pods", report.Of(unpinned...)).AtMost(report.Max, 0),
	)
	return nil
}

func countTrue(all []bool) (n int) {
	for _, one := range all {
		if one {
			n++
		}
	}
	return n
}

// clear deletes all Pods of a namespace.
func (p *podPins) clear(ctx context.Context, namespace string) error {
	now := int64(0)
	pods := p.Client.CoreV1().Pods(namespace)
	return lab.Until(ctx, "the Pods of "+namespace+" to go", 5*time.Minute, func(ctx context.Context) error {
		if err := pods.DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &now}, metav1.ListOptions{}); err != nil {
			return err
		}
		left, err := pods.List(ctx, metav1.ListOptions{Limit: 1})
		if err == nil && len(left.Items) > 0 {
			err = errors.New("some are there")
		}
		return err
	})
}
