package faults_test

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configstamp/configstamp/e2e/faults"
	"github.com/configstamp/configstamp/e2e/harness"
)

// etcd too: nothing is lost, and everybody begins anew.
func TestEtcdIsKilled(t *testing.T) {
	long(t, "it restarts the control plane")
	_, trial := scenario(t)
	fanOut(t, trial, 4)
	stop := court.Supervise()
	defer stop()
	end := court.Outages.Begin()
	harness.Must(t, trial.Set("configmap/c", value(1)))
	harness.Must(t, court.Run.RestartCluster(t.Context(), "etcd", "kube-apiserver"))
	end()
	eventually(t, func() error { return trial.Set("configmap/c", value(2)) })
	trial.Judge(t, 100*time.Second)
}

// All rights are taken away from the product for a while, and given back.
func TestRightsAreTakenAway(t *testing.T) {
	_, trial := scenario(t)
	fanOut(t, trial, 4)
	bindings := court.Run.Client.RbacV1().ClusterRoleBindings()
	was, err := bindings.Get(t.Context(), "configstamp", metav1.GetOptions{})
	harness.Must(t, err)
	harness.Must(t, bindings.Delete(t.Context(), "configstamp", metav1.DeleteOptions{}))
	given := false
	give := func() {
		if given {
			return
		}
		given = true
		was.ResourceVersion, was.UID = "", ""
		_, err := bindings.Create(context.Background(), was, metav1.CreateOptions{})
		harness.Must(t, err)
	}
	t.Cleanup(give)
	for _, process := range court.Run.Product.All() {
		process.Proxy.Cut(watches)
	}
	time.Sleep(time.Second)
	harness.Must(t, trial.Set("configmap/c", value(1)))
	harness.Must(t, trial.Put(faults.Workload("Deployment", "w0", "2", faults.Reads("configmap/c")...)))
	harness.Must(t, trial.Create(faults.Workload("Deployment", "new", "1", faults.Reads("configmap/c")...)))
	time.Sleep(4 * time.Second)
	give()
	trial.Judge(t, 100*time.Second)
}

func eventually(t *testing.T, ok func() error) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		err := ok()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}
