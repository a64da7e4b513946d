package workload_test

import (
	"testing"
	"time"

	"github.com/configstamp/configstamp/internal/workload"
)

func TestTemplateOf(t *testing.T) {
	table := workload.Builtin().With(workload.Known()...)
	rollout, _ := table.Find("argoproj.io", "rollouts")
	configured, err := workload.ParseKind("argoproj.io/v1alpha1/rollouts=spec.template,rollout=Progressing")
	if err != nil {
		t.Fatal(err)
	}
	deployment, _ := table.Find("apps", "deployments")
	const ref = `"workloadRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"cart"}`
	for sentence, c := range map[string]struct {
		kind     *workload.Kind
		object   string
		borrows  bool
		observed int64
	}{
		"a Deployment's, looked at":       {rollout, `{"metadata":{"namespace":"shop"},"spec":{` + ref + `},"status":{"workloadObservedGeneration":"7"}}`, true, 7},
		"a Deployment's, not looked at":   {rollout, `{"metadata":{"namespace":"shop"},"spec":{` + ref + `}}`, true, 0},
		"the kind is named by --workload": {configured, `{"metadata":{"namespace":"shop"},"spec":{` + ref + `}}`, true, 0},
		"its own":                         {rollout, `{"metadata":{"namespace":"shop"},"spec":{"template":{}}}`, false, 0},
		"of what makes no rollouts":       {rollout, `{"metadata":{"namespace":"shop"},"spec":{"workloadRef":{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"cart"}}}`, false, 0},
		"of what Argo does not take":      {rollout, `{"metadata":{"namespace":"shop"},"spec":{"workloadRef":{"apiVersion":"batch/v1","kind":"CronJob","name":"cart"}}}`, false, 0},
		"of one that is as itself":        {rollout, `{"metadata":{"namespace":"shop"},"spec":{"workloadRef":{"apiVersion":"argoproj.io/v1alpha1","kind":"Rollout","name":"cart"}}}`, false, 0},
		"a field that means nothing here": {deployment, `{"metadata":{"namespace":"shop"},"spec":{` + ref + `}}`, false, 0},
		"what cannot be read":             {rollout, `{"spec":{"workloadRef":"cart"}}`, false, 0},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := c.kind.TemplateOf([]byte(c.object), table)
			if got == nil != !c.borrows {
				t.Fatalf("it runs the template of %v", got)
			}
			if want := (workload.TemplateOf{Ref: workload.Ref{Kind: deployment, Namespace: "shop", Name: "cart"}, Observed: c.observed}); got != nil && *got != want {
				t.Errorf("it runs the template of %+v, want %+v", *got, want)
			}
		})
	}

	healthy := workload.Status{Phase: workload.RolledOut, Wanted: 3, Available: 3, Updated: 3}
	failed := workload.Status{Phase: workload.Failed, Why: "RolloutAborted", FailedAt: time.Unix(1, 0), Wanted: 3, Available: 3, Updated: 1, Missing: 2}
	paused := workload.Status{Waits: "it is paused", Wanted: 3, Available: 3, Updated: 3}
	unseen := workload.Status{Phase: workload.Rolling, Wanted: 3, Available: 3, Missing: 3, Old: true}
	for sentence, c := range map[string]struct {
		observed   int64
		told, want workload.Status
	}{
		"it speaks of the newest template":        {7, healthy, healthy},
		"it speaks of the template before":        {6, healthy, unseen},
		"it speaks of one of that name before":    {57, healthy, unseen},
		"what has failed is the template before":  {6, failed, unseen},
		"it rolls nothing, whatever the template": {6, paused, paused},
	} {
		if got := (&workload.TemplateOf{Observed: c.observed}).For(7, c.told); got != c.want {
			t.Errorf("%s: %+v, want %+v", sentence, got, c.want)
		}
	}
}
