package faults_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configstamp/configstamp/e2e/faults"
	"github.com/configstamp/configstamp/e2e/harness"
)

// configure patches both entries of our webhook configuration, until the test ends.
func configure(t *testing.T, fields map[string]any) (undo func()) {
	t.Helper()
	configurations := court.Run.Client.AdmissionregistrationV1().MutatingWebhookConfigurations()
	was, err := configurations.Get(t.Context(), "configstamp", metav1.GetOptions{})
	harness.Must(t, err)
	var patch []map[string]any
	for i := range was.Webhooks {
		for field, value := range fields {
			patch = append(patch, map[string]any{"op": "replace", "path": "/webhooks/" + string(rune('0'+i)) + "/" + field, "value": value})
		}
	}
	text, err := json.Marshal(patch)
	harness.Must(t, err)
	_, err = configurations.Patch(t.Context(), "configstamp", types.JSONPatchType, text, metav1.PatchOptions{})
	harness.Must(t, err)
	time.Sleep(time.Second) // the API server reads it now and then
	done := false
	undo = func() {
		if done {
			return
		}
		done = true
		now, err := configurations.Get(context.Background(), "configstamp", metav1.GetOptions{})
		harness.Must(t, err)
		now.Webhooks = was.Webhooks
		_, err = configurations.Update(context.Background(), now, metav1.UpdateOptions{})
		harness.Must(t, err)
		time.Sleep(time.Second)
	}
	t.Cleanup(undo)
	return undo
}

// live is what users do while no webhook answers: edits, new objects, and full
// PUTs, which drop the stamps and roll (README, "What it cannot do").
func live(t *testing.T, trial *faults.Trial, round int) {
	t.Helper()
	harness.Must(t, trial.Set("configmap/c", value(round)))
	harness.Must(t, trial.Patch("deployment/w0", `{"metadata":{"labels":{"a":"b"}}}`))
	harness.Must(t, trial.Put(faults.Workload("StatefulSet", "w1", "1", faults.Reads("configmap/c")...)))
	harness.Must(t, trial.Put(faults.Workload("DaemonSet", "w2", "2", faults.Reads("configmap/c")...)))
	harness.Must(t, trial.Create(faults.Workload("Deployment", "new", "1", faults.Reads("configmap/c")...)))
	if stored := court.Run.Existing(t, trial.Namespace).Get("deployment/new"); len(harness.Stamps(stored)) > 0 {
		t.Error("a webhook answers: nothing is away")
	}
	harness.Must(t, trial.Set("configmap/c", value(round+1)))
}

func TestNoWebhookUnderIgnore(t *testing.T) {
	product, trial := scenario(t)
	fanOut(t, trial, 4)
	end := court.Outages.Begin()
	for _, webhook := range product.Webhooks {
		harness.Must(t, webhook.Kill())
	}
	live(t, trial, 1)
	time.Sleep(3 * time.Second)
	harness.Must(t, product.Start(t.Context()))
	end()
	trial.Judge(t, 2*soon)
}

// Under Fail, users are refused by their own choice, and nothing is lost.
func TestNoWebhookUnderFail(t *testing.T) {
	product, trial := scenario(t)
	fanOut(t, trial, 4)
	undo := configure(t, map[string]any{"failurePolicy": "Fail"})
	for _, webhook := range product.Webhooks {
		harness.Must(t, webhook.Kill())
	}
	harness.Must(t, trial.Set("configmap/c", value(1)))
	refused := faults.NewUser(court.Run.Dynamic, trial.Namespace)
	if err := refused.Create(faults.Workload("Deployment", "refused", "1")); err == nil {
		t.Error("a Deployment was created under failurePolicy Fail without a webhook")
	}
	gone := court.Run.Existing(t, trial.Namespace)
	gone.Kubectl("delete", "statefulset/w1", "--cascade=foreground", "--timeout=60s") // waits for nobody
	time.Sleep(3 * time.Second)
	harness.Must(t, product.Start(t.Context()))
	trial.Judge(t, 2*soon)
	wantTemplates(t, trial, "deployment/w0", 2)
	undo()
}
