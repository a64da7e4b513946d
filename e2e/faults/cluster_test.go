package faults_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configstamp/configstamp/e2e/faults"
	"github.com/configstamp/configstamp/e2e/harness"
)

// The API server is killed in the midst of a fan-out, and starts again.
func TestTheAPIServerIsKilled(t *testing.T) {
	_, trial := scenario(t)
	fanOut(t, trial, 12)
	stop := court.Supervise()
	defer stop()
	for i := range 2 {
		end := court.Outages.Begin()
		harness.Must(t, trial.Set("configmap/c", value(2*i+1)))
		time.Sleep(time.Duration(300+100*i) * time.Millisecond)
		harness.Must(t, court.Run.RestartCluster(t.Context(), "kube-apiserver"))
		end()
		eventually(t, func() error { return trial.Set("configmap/c", value(2*i+2)) })
		time.Sleep(time.Second)
	}
	trial.Judge(t, 100*time.Second)
}

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

// A policy and a quota refuse some workloads: the others roll, and those follow
// when they may. (A quota counts new objects, which no patch of ours makes.)
func TestAPolicyRefusesSomeWorkloads(t *testing.T) {
	_, trial := scenario(t)
	fanOut(t, trial, 8)
	t.Run("refused", func(t *testing.T) {
		court.Run.DenyUpdates(t, trial.Namespace, "w0", "nothing may touch w0")
		eventually(t, func() error {
			_, err := court.Run.Client.AppsV1().Deployments(trial.Namespace).Patch(t.Context(), "w0", types.MergePatchType,
				[]byte(`{"metadata":{"labels":{"probe":"x"}}}`), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
			if err == nil {
				return fmt.Errorf("the policy is not in force")
			}
			return nil
		})
		harness.Must(t, trial.Set("configmap/c", value(1)))
		eventually(t, func() error {
			untrue, err := trial.Converge(t.Context(), 0)
			if err != nil {
				return err
			}
			if len(untrue) != 1 || untrue[0].Object != "deployment/w0" {
				return fmt.Errorf("untrue: %v, want w0 alone", untrue)
			}
			return nil
		})
	})
	trial.Judge(t, 90*time.Second)
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
