package faults_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configstamp/configstamp/e2e/faults"
	"github.com/configstamp/configstamp/e2e/harness"
)

func TestOtherWebhooksBeforeAndAfterOurs(t *testing.T) {
	product, trial := scenario(t)
	trial.Others = true
	court.Run.OtherWebhook(t, trial.Namespace, "aaa")
	court.Run.OtherWebhook(t, trial.Namespace, "zzz")
	fanOut(t, trial, 8)
	for i := range 4 {
		harness.Must(t, trial.Set("configmap/c", value(i+1)))
		harness.Must(t, trial.Put(faults.Workload("Deployment", "w0", fmt.Sprint(i/2), faults.Reads("configmap/c")...)))
		if i == 2 {
			end := court.Outages.Begin()
			harness.Must(t, product.Webhooks[0].Kill())
			harness.Must(t, product.Start(t.Context()))
			end()
		}
		time.Sleep(time.Second)
	}
	trial.Judge(t, soon)
}

// GitOps tools write the same manifests every second, in three ways, while their
// sources are edited and a webhook dies.
func TestGitOpsEverySecond(t *testing.T) {
	product, trial := scenario(t)
	harness.Must(t, trial.Set("configmap/c", value(0)))
	manifests := map[string]*unstructured.Unstructured{}
	for _, way := range []string{"applied", "put", "kubectl"} {
		manifests[way] = faults.Workload("Deployment", way, "1", faults.Reads("configmap/c")...)
	}
	s := court.Run.Existing(t, trial.Namespace)
	text, err := manifests["kubectl"].MarshalJSON()
	harness.Must(t, err)
	harness.Must(t, trial.Apply(manifests["applied"]))
	harness.Must(t, trial.Create(manifests["put"]))
	harness.Must(t, trial.Create(manifests["kubectl"]))
	settled(t, trial)
	var tools sync.WaitGroup
	rounds := 15
	if testing.Short() {
		rounds = 6
	}
	for _, write := range []func() error{
		func() error { return trial.Apply(manifests["applied"]) },
		func() error { return trial.Put(manifests["put"]) },
		func() error {
			began := time.Now()
			result := s.TryKubectlInput(string(text), "apply", "-f", "-", "-o", "jsonpath={.metadata.resourceVersion}")
			if result.Code != 0 {
				return fmt.Errorf("kubectl apply: %s", result.Stderr)
			}
			return trial.Note("kubectl apply", result.Stdout, began)
		},
	} {
		tools.Go(func() {
			for range rounds {
				if err := write(); err != nil {
					t.Error(err)
				}
				time.Sleep(time.Second)
			}
		})
	}
	for i := range rounds / 3 {
		harness.Must(t, trial.Set("configmap/c", value(i+1)))
		time.Sleep(2 * time.Second)
		if i == 1 {
			end := court.Outages.Begin()
			harness.Must(t, product.Webhooks[0].Kill())
			harness.Must(t, product.Start(t.Context()))
			end()
		}
	}
	tools.Wait()
	trial.Judge(t, soon)
}
