package faults_test

import (
	"testing"
	"time"

	"github.com/configstamp/configstamp/e2e/faults"
	"github.com/configstamp/configstamp/e2e/harness"
)

// While no webhook answers users go on: edits, new objects, and full PUTs, which drop the
// stamps and roll (README, "What it cannot do").
func TestNoWebhookUnderIgnore(t *testing.T) {
	product, trial := scenario(t)
	fanOut(t, trial, 4)
	end := court.Outages.Begin()
	for _, webhook := range product.Webhooks {
		harness.Must(t, webhook.Kill())
	}
	harness.Must(t, trial.Set("configmap/c", value(1)))
	harness.Must(t, trial.Patch("deployment/w0", `{"metadata":{"labels":{"a":"b"}}}`))
	harness.Must(t, trial.Put(faults.Workload("StatefulSet", "w1", "1", faults.Reads("configmap/c")...)))
	harness.Must(t, trial.Put(faults.Workload("DaemonSet", "w2", "2", faults.Reads("configmap/c")...)))
	harness.Must(t, trial.Create(faults.Workload("Deployment", "new", "1", faults.Reads("configmap/c")...)))
	if stored := court.Run.Existing(t, trial.Namespace).Get("deployment/new"); len(harness.Stamps(stored)) > 0 {
		t.Error("a webhook answers: nothing is away")
	}
	harness.Must(t, trial.Set("configmap/c", value(2)))
	time.Sleep(3 * time.Second)
	harness.Must(t, product.Start(t.Context()))
	end()
	trial.Judge(t, 2*soon)
}
