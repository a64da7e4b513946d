package e2e

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/configstamp/configstamp/e2e/harness"
)

// operator owns a Deployment, as a controller of a custom resource does.
type operator struct {
	deployments dynamic.ResourceInterface
	desired     *unstructured.Unstructured
	writes      atomic.Int64 // that are no dry runs
}

// replace writes the whole spec, whatever the cluster has. It leaves the metadata, in which Deployments have their revision.
func (o *operator) replace(ctx context.Context) error {
	live, err := o.deployments.Get(ctx, o.desired.GetName(), metav1.GetOptions{})
	if err != nil {
		return err
	}
	o.writes.Add(1)
	live.Object["spec"] = o.desired.Object["spec"]
	_, err = o.deployments.Update(ctx, live, metav1.UpdateOptions{})
	return err
}

// compare writes the Deployment only if a dry run of that would change its spec, as pulp-operator does.
func (o *operator) compare(ctx context.Context) error {
	would, err := o.deployments.Update(ctx, o.desired, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return err
	}
	live, err := o.deployments.Get(ctx, o.desired.GetName(), metav1.GetOptions{})
	if err != nil || equality.Semantic.DeepEqual(would.Object["spec"], live.Object["spec"]) {
		return err
	}
	return o.replace(ctx)
}

// start reconciles each half second until the test ends.
func (o *operator) start(t *testing.T, reconcile func(*operator, context.Context) error) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			if err := reconcile(o, ctx); err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) {
				t.Errorf("the operator cannot reconcile: %v", err)
				return
			}
			time.Sleep(500 * time.Millisecond)
		}
	}()
	t.Cleanup(func() {
		stop()
		<-ended
	})
}

// An operator that knows nothing of configstamp takes back no stamp, and its writes roll nothing early: each edit is one
// rollout.
func TestOperators_EachEditIsOneRollout(t *testing.T) {
	t.Parallel()
	for name, reconcile := range map[string]func(*operator, context.Context) error{
		"writes whole": (*operator).replace, "compares with a dry run": (*operator).compare,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := run.Space(t)
			s.Set("configmap/c", "k", "1")
			s.Set("secret/s", "k", "1")
			manifest, desired := deployment("d", "configmap/c", "secret/s"), map[string]any{}
			harness.Must(t, yaml.Unmarshal([]byte(manifest), &desired))
			s.Create(manifest)
			o := &operator{
				deployments: run.Dynamic.Resource(appsv1.SchemeGroupVersion.WithResource("deployments")).Namespace(s.Namespace),
				desired:     &unstructured.Unstructured{Object: desired},
			}
			before := s.Settled("deployment/d")
			o.start(t, reconcile)
			s.WantRolls(before, rolls{})
			for rolled, source := range []string{"configmap/c", "secret/s", "configmap/c"} {
				s.Edit(source, "k", "new-"+s.Get(source).GetResourceVersion())
				s.WantRolls(before, rolls{"deployment/d": rolled + 1})
				wantStamp(t, s, "deployment/d", source)
			}
			s.SetPolicy("namespace", settings{"pause": "true"})
			before = s.Counts()
			s.Edit("configmap/c", "k", "paused")
			s.WantRolls(before, rolls{})
			s.DropPolicy("namespace", settings{"pause": ""})
			s.WantRolls(before, rolls{"deployment/d": 1})
			// A rollout between the dry run and the comparison is one more write.
			if wrote := o.writes.Load(); name == "writes whole" && wrote < 10 || name != "writes whole" && wrote > 4 {
				t.Errorf("the operator has written %d times", wrote)
			}
		})
	}
}
