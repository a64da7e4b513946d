package soak

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/configstamp/configstamp/e2e/harness"
)

// crowd is clients that ask for admissions, each of which has to come back with
// the same stamps.
type crowd struct {
	tally  *tally
	stamps map[string]string
	before calls

	space             *harness.Space
	deployments, pods dynamic.ResourceInterface
	members           []*client
	stop              func()

	mu        sync.Mutex
	kills     []time.Time // of webhooks
	unstamped []string    // Deployments that were stored so
}

// client is one of the crowd, with a Deployment of its own.
type client struct {
	*crowd
	name  string
	round int
}

// podSpec uses a ConfigMap and a Secret in three ways.
const podSpec = `
containers:
  - name: app
    image: none
    envFrom:
      - configMapRef: {name: settings}
      - secretRef: {name: password}
    volumeMounts: [{name: settings, mountPath: /settings}]
volumes: [{name: settings, configMap: {name: settings}}]
`

// deployment is paused: that its template changes makes no ReplicaSets.
const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: %s}
spec:
  paused: true
  replicas: 0
  selector: {matchLabels: {app: app}}
  template:
    metadata: {labels: {app: app}}
    spec: %s
`

// gather makes the crowd, and has it begin.
func gather(t *testing.T) *crowd {
	t.Helper()
	space := cluster.Space(t)
	space.WaitServiceAccount()
	space.Set("configmap/settings", "MESSAGE", "hello world")
	space.Set("secret/password", "PASSWORD", "correct horse battery staple")
	c := &crowd{
		tally: &tally{},
		stamps: map[string]string{
			harness.StampKey("configmap/settings"): space.Digest("configmap/settings"),
			harness.StampKey("secret/password"):    space.Digest("secret/password"),
		},
		before:      theirCalls(t),
		space:       space,
		deployments: cluster.Dynamic.Resource(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}).Namespace(space.Namespace),
		pods:        cluster.Dynamic.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).Namespace(space.Namespace),
	}
	for i := range *clients {
		one := &client{crowd: c, name: "client-" + strconv.Itoa(i)}
		space.Create(fmt.Sprintf(deployment, one.name, indented(podSpec)))
		c.members = append(c.members, one)
	}
	c.tally.begin("beginning", "")
	c.goOn(t)
	return c
}

// goOn has the crowd ask until pause.
func (c *crowd) goOn(t *testing.T) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	turns := time.NewTicker(time.Second / time.Duration(*rate))
	var asking sync.WaitGroup
	for _, one := range c.members {
		asking.Go(func() { one.run(ctx, turns.C) })
	}
	c.stop = func() { stop(); asking.Wait(); turns.Stop() }
	t.Cleanup(c.stop)
}

// pause waits until all that was asked is answered.
func (c *crowd) pause() { c.stop() }

// indented is a block of YAML, as it stands inside another.
func indented(block string) string { return strings.ReplaceAll(block, "\n", "\n      ") }

// way is one kind of admission.
type way struct {
	name string
	ask  func(*client, context.Context) (*unstructured.Unstructured, error)
}

// ways are what is asked for in turn.
func ways() []way {
	return []way{
		{"a Deployment created in a dry run", (*client).createDry},
		{"a template changed", (*client).change},
		{"a Deployment created", (*client).create},
		{"a template changed in a dry run", (*client).changeDry},
		{"a Pod created in a dry run", (*client).createPodDry},
		{"a label changed", (*client).label},
	}
}

func (c *client) run(ctx context.Context, turns <-chan time.Time) {
	for {
		for _, way := range ways() {
			select {
			case <-ctx.Done():
				return
			case <-turns:
				c.turn(way)
			}
		}
	}
}

// turn asks once. What was begun is ended, within a minute.
func (c *client) turn(way way) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c.round++
	phase, began := c.tally.current(), time.Now()
	object, err := way.ask(c, ctx)
	if err != nil {
		c.tally.add(phase, way.name, began, err, c.unanswered(began) && cut(err))
		return
	}
	stamps := harness.Stamps(object)
	if !maps.Equal(stamps, c.stamps) {
		err = fmt.Errorf("came back with the stamps %v, want %v", stamps, c.stamps)
	}
	c.tally.add(phase, way.name, began, err, c.unanswered(began) && len(stamps) == 0)
	c.putAway(ctx, way, object, len(stamps) == 0)
}

func (c *client) createDry(ctx context.Context) (*unstructured.Unstructured, error) {
	return create(ctx, c.deployments, fmt.Sprintf(deployment, c.name+"-dry", indented(podSpec)), dry())
}

func (c *client) createPodDry(ctx context.Context) (*unstructured.Unstructured, error) {
	return create(ctx, c.pods, fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec: %s", c.name, indented(podSpec)), dry())
}

func dry() metav1.CreateOptions { return metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}} }

func create(ctx context.Context, to dynamic.ResourceInterface, manifest string, options metav1.CreateOptions) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &object.Object); err != nil {
		return nil, err
	}
	return to.Create(ctx, object, options)
}

func (c *client) change(ctx context.Context) (*unstructured.Unstructured, error) {
	return c.patch(ctx, metav1.PatchOptions{}, `{"spec":{"template":{"metadata":{"annotations":{"round":"%d"}}}}}`)
}

func (c *client) changeDry(ctx context.Context) (*unstructured.Unstructured, error) {
	return c.patch(ctx, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}, `{"spec":{"template":{"metadata":{"annotations":{"round":"%d"}}}}}`)
}

func (c *client) label(ctx context.Context) (*unstructured.Unstructured, error) {
	return c.patch(ctx, metav1.PatchOptions{}, `{"metadata":{"labels":{"round":"%d"}}}`)
}

func (c *client) patch(ctx context.Context, options metav1.PatchOptions, format string) (*unstructured.Unstructured, error) {
	return c.deployments.Patch(ctx, c.name, types.MergePatchType, fmt.Appendf(nil, format, c.round), options)
}

// create creates a Deployment that putAway deletes.
func (c *client) create(ctx context.Context) (*unstructured.Unstructured, error) {
	return create(ctx, c.deployments, fmt.Sprintf(deployment, fmt.Sprintf("%s-%d", c.name, c.round), indented(podSpec)), metav1.CreateOptions{})
}

// putAway deletes what create created, and leaves what was stored unstamped for
// waitHealed.
func (c *client) putAway(ctx context.Context, way way, object *unstructured.Unstructured, unstamped bool) {
	name := object.GetName()
	switch {
	case name != fmt.Sprintf("%s-%d", c.name, c.round):
	case unstamped:
		c.mu.Lock()
		defer c.mu.Unlock()
		c.unstamped = append(c.unstamped, name)
	default:
		began := time.Now()
		if err := c.deployments.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			c.tally.add(c.tally.current(), way.name+", to be deleted", began, err, false)
		}
	}
}

// until waits until there were so many admissions.
func (c *crowd) until(t *testing.T, admissions int, bound time.Duration) {
	t.Helper()
	for deadline := time.Now().Add(bound); c.tally.count() < admissions; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("there were %d admissions, want %d: the machine is too busy, or -rate=%d too low", c.tally.count(), admissions, *rate)
		}
	}
}
