package scenario

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/e2e/bench/lab"
	"github.com/configstamp/configstamp/e2e/bench/product"
	"github.com/configstamp/configstamp/e2e/bench/report"
	"github.com/configstamp/configstamp/e2e/harness"
	"github.com/configstamp/configstamp/internal/snapshot"
)

func snapshotsHeld() Scenario {
	return Scenario{
		Name: "pins-memory", Title: "Memory for each snapshot",
		Method: "10,000 snapshots of 2 KiB, ten of each source, are there before the product's processes start, one after the other. The floor is the same start with the sources alone, " +
			"the other one with as many ordinary ConfigMaps in the place of the snapshots. Nothing is collected meanwhile.",
		Run: func(ctx context.Context, b *Bench, r *report.Result) error {
			if b.Given.Adapter.Pins == nil {
				r.Skip("%s makes no snapshots", b.Given.Adapter.Name)
				return nil
			}
			return errors.Join(b.Product.Pins(ctx), (&held{Bench: b, r: r, sources: b.Size(1000, 100)}).run(ctx))
		},
	}
}

// held measures memory. Each source has ten snapshots, which all stay: they are its last.
type held struct {
	*Bench
	r       *report.Result
	sources int
}

const (
	heldNamespace     = "pins-held"
	snapshotsOfSource = 10
)

func (h *held) run(ctx context.Context) error {
	if err := h.pinningNamespace(ctx, heldNamespace); err != nil {
		return err
	}
	options := product.Options{Pins: true}
	if err := h.Started(ctx, options, func() error { return nil }); err != nil { // makes the key
		return err
	}
	ring, err := h.ring(ctx)
	if err != nil {
		return err
	}
	if err := h.fill(ctx, 1, func(cm *corev1.ConfigMap) *corev1.ConfigMap { return cm }); err != nil {
		return err
	}
	bare, _, err := measureStart(ctx, h.Bench, options)
	if err != nil {
		return err
	}
	n := h.sources * snapshotsOfSource
	more := map[string]map[string]float64{}
	for _, as := range []string{"ConfigMaps", "snapshots"} {
		h.Say("%d %s", n, as)
		err := h.fill(ctx, snapshotsOfSource, func(cm *corev1.ConfigMap) *corev1.ConfigMap {
			of, content := checksum.Source{Kind: checksum.ConfigMap, Name: cm.Name}, checksum.ContentOfConfigMap(cm)
			made := snapshot.Of(cm, ring.SnapshotName(cm.Namespace, of, content), time.Now())
			if as == "ConfigMaps" {
				made.Labels, made.Annotations = map[string]string{"example.com/ordinary": "true"}, nil
			}
			return made
		})
		if err != nil {
			return err
		}
		peak, _, err := measureStart(ctx, h.Bench, options)
		if err != nil {
			return err
		}
		more[as] = map[string]float64{}
		for role := range peak {
			more[as][role] = (peak[role] - bare[role]) * (1 << 20) / float64(n)
		}
		if as == "ConfigMaps" {
			err := h.Client.CoreV1().ConfigMaps(heldNamespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "example.com/ordinary"})
			if err != nil {
				return fmt.Errorf("deleting ConfigMaps: %w", err)
			}
		}
	}
	for _, role := range roles(h.Product) {
		h.r.Add(report.One(role+": peak memory for each snapshot", "bytes", more["snapshots"][role]).
			Over("the same for an ordinary ConfigMap", report.Of(more["ConfigMaps"][role])).Saying("%d snapshots", n))
	}
	return nil
}

// ring is that of the product's key.
func (h *held) ring(ctx context.Context) (*checksum.Ring, error) {
	secret, err := h.Client.CoreV1().Secrets(harness.OwnNamespace).Get(ctx, "configstamp-key", metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading the product's key: %w", err)
	}
	for _, material := range secret.Data {
		key, err := checksum.NewKey(material)
		if err != nil {
			return nil, err
		}
		return checksum.NewRing(key), nil
	}
	return nil, errors.New("the product has no key")
}

// fill creates what is made of each source's content, of so many versions.
func (h *held) fill(ctx context.Context, versions int, of func(*corev1.ConfigMap) *corev1.ConfigMap) error {
	return lab.Fill(ctx, h.sources*versions, func(ctx context.Context, i int) error {
		name := fmt.Sprintf("source-%05d", i/versions)
		value := fmt.Sprintf("%d-%d-%s", i, versions, strings.Repeat("v", 2<<10))
		made := of(lab.NewConfigMap(heldNamespace, name, value))
		if _, err := h.Client.CoreV1().ConfigMaps(heldNamespace).Create(ctx, made, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating ConfigMap %s: %w", made.Name, err)
		}
		return nil
	})
}

func snapshotsKept() Scenario {
	return Scenario{
		Name: "pins-etcd", Title: "What 100 edits leave in the cluster",
		Controllers: workloadControllers(),
		Method: "A ConfigMap of 2 KiB is edited 100 times, and the Deployment that uses it rolls each time. It keeps ten revisions, as by default. After each edit all objects of the namespace are read, " +
			"ConfigMaps, Deployments and ReplicaSets, and the bytes that etcd keeps of each (protobuf) are added up. Snapshots are unused for ten seconds, not an hour, before they are collected; the last ten of a source stay.",
		Run: func(ctx context.Context, b *Bench, r *report.Result) error {
			k := &kept{Bench: b, r: r, edits: b.Size(100, 30), curves: map[string]*report.Curve{}}
			return b.pinning(ctx, r, product.Options{Immediate: true}, func() error { return k.measure(ctx) })
		},
	}
}

// kept measures what objects take.
type kept struct {
	*Bench
	r      *report.Result
	edits  int
	curves map[string]*report.Curve
}

const (
	pinnedEdits   = "pins-edits"
	unpinnedEdits = "pins-edits-without"
)

func (k *kept) measure(ctx context.Context) error {
	if err := errors.Join(k.pinningNamespace(ctx, pinnedEdits), k.Product.Namespace(ctx, unpinnedEdits)); err != nil {
		return err
	}
	ways := []struct{ name, namespace string }{{"pinned", pinnedEdits}, {"not pinned", unpinnedEdits}}
	for _, way := range ways {
		if err := k.ConfigMap(ctx, way.namespace, "settings", k.content(0)); err != nil {
			return err
		}
		d := lab.Workload{Namespace: way.namespace, Name: "app", Sources: []string{"configmap/settings"}, Rolling: true}.Deployment()
		d.Spec.Replicas = ptr.To[int32](0) // so that each rollout is complete without nodes, and old revisions go
		if _, err := k.Client.AppsV1().Deployments(way.namespace).Create(ctx, d, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating a Deployment: %w", err)
		}
	}
	last, most := map[string]float64{}, map[string]float64{}
	for edit := range k.edits {
		for _, way := range ways {
			templates, err := k.Templates(ctx, way.namespace)
			if err != nil {
				return err
			}
			before := templates.Changes()
			err = k.Edit(ctx, way.namespace, "settings", k.content(edit+1))
			if err == nil {
				_, err = templates.Wait(ctx, before, 1, time.Minute)
			}
			templates.Stop()
			if err == nil {
				err = lab.Pause(ctx, 200*time.Millisecond)
			}
			if err != nil {
				return err
			}
			bytes, snapshots, err := k.held(ctx, way.namespace)
			if err != nil {
				return err
			}
			last[way.name], most[way.name] = bytes, max(most[way.name], snapshots)
			k.curve(way.name+": bytes of all objects", "KiB").Add(float64(edit+1), bytes/1024)
			if way.name == "pinned" {
				k.curve("snapshots", "snapshots").Add(float64(edit+1), snapshots)
			}
		}
	}
	var left float64
	err := lab.Until(ctx, "the collection of snapshots", 2*time.Minute, func(ctx context.Context) (err error) {
		if last["pinned, collected"], left, err = k.held(ctx, pinnedEdits); err == nil && left > snapshotsOfSource+2 {
			err = fmt.Errorf("%v are there", left)
		}
		return err
	})
	if err != nil {
		return err
	}
	k.r.Add(
		report.One(fmt.Sprintf("after %d edits: all objects of the namespace", k.edits), "KiB", last["pinned"]/1024).Over("where nothing is pinned", report.Of(last["not pinned"]/1024)),
		report.One("once nothing more is collected: all objects of the namespace", "KiB", last["pinned, collected"]/1024).Over("where nothing is pinned", report.Of(last["not pinned"]/1024)),
		report.One("snapshots, at most", "snapshots", most["pinned"]).Saying("%v in the end", left),
	)
	return nil
}

func (k *kept) content(edit int) string {
	return fmt.Sprintf("%d %s", edit, strings.Repeat("v", 2<<10))
}

func (k *kept) curve(name, unit string) *report.Curve {
	if k.curves[name] == nil {
		k.curves[name] = &report.Curve{Name: name, X: "edits", Y: unit}
		k.r.Curves = append(k.r.Curves, k.curves[name])
	}
	return k.curves[name]
}

// held is what the objects of a namespace take, in bytes, and how many snapshots are there.
func (k *kept) held(ctx context.Context, namespace string) (bytes, snapshots float64, err error) {
	maps, err := k.Client.CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, 0, fmt.Errorf("listing ConfigMaps: %w", err)
	}
	deployments, err := k.Client.AppsV1().Deployments(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, 0, fmt.Errorf("listing Deployments: %w", err)
	}
	sets, err := k.Client.AppsV1().ReplicaSets(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, 0, fmt.Errorf("listing ReplicaSets: %w", err)
	}
	for i := range maps.Items {
		bytes += float64(maps.Items[i].Size())
		if maps.Items[i].Labels[checksum.SnapshotLabel] != "" {
			snapshots++
		}
	}
	for i := range deployments.Items {
		bytes += float64(deployments.Items[i].Size())
	}
	for i := range sets.Items {
		bytes += float64(sets.Items[i].Size())
	}
	return bytes, snapshots, nil
}
