package hostile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/configstamp/configstamp/e2e/harness"
)

// limit is the memory that the chart gives to each process, in bytes; shipped reads it.
var limit int64

// manifest is what the chart installs, with pins.
const manifest = "pins.yaml"

// shipped is a run with the flags and the memory that the chart gives.
func shipped() (harness.Wanted, error) {
	wanted := harness.Wanted{
		Manifest: manifest, AsShipped: true, Plain: true,
		Options: harness.Options{Settle: 2 * time.Second},
		// Of Deployments only those of the neighbour have Pods: see fleet.
		Up: []string{"--controller-manager-arg", "controllers=*,-deployment-controller,-replicaset-controller,-pod-garbage-collector-controller"},
	}
	text, err := os.ReadFile(filepath.Join("..", "testdata", manifest))
	if err != nil {
		return wanted, fmt.Errorf("reading what the chart installs: %w", err)
	}
	containers, err := containersOf(string(text))
	if err != nil {
		return wanted, err
	}
	for _, container := range containers {
		limit = container.Resources.Limits.Memory().Value()
		args := append(slices.DeleteFunc(slices.Clone(container.Args[1:]), ofPods), "-v=0", "--dialects=reloader,wave")
		if container.Name == "controller" {
			wanted.Options.Controller = args
		} else {
			wanted.Options.Webhook = append(args, "--freshness-timeout=250ms") // its default; package harness gives more
		}
	}
	return wanted, os.Setenv("CONFIGSTAMP_MEMORY_LIMIT", fmt.Sprint(limit))
}

// containersOf are those of the Deployment in a manifest.
func containersOf(manifest string) ([]corev1.Container, error) {
	for document := range strings.SplitSeq(manifest, "\n---\n") {
		var deployment appsv1.Deployment
		if err := yaml.Unmarshal([]byte(document), &deployment); err == nil && deployment.Kind == "Deployment" {
			return deployment.Spec.Template.Spec.Containers, nil
		}
	}
	return nil, errors.New("the chart's manifest has no Deployment")
}

// ofPods reports whether a flag says where a process in a Pod listens, or has its
// certificate from: package harness has its own.
func ofPods(flag string) bool {
	name, _, _ := strings.Cut(strings.TrimLeft(flag, "-"), "=")
	return slices.Contains([]string{"address", "metrics-address", "impact-address", "self-managed-certificate"}, name)
}

// watch does what a kubelet does, and fails the test where a kubelet starts a container
// anew: it has ended, holds more than its limit, or fails three probes one after the other.
func watch(t *testing.T) []*harness.Process {
	t.Helper()
	all := run.Product.All()
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	t.Cleanup(func() { stop(); <-done })
	failed := map[string]int{}
	ticker := time.NewTicker(time.Second)
	go func() {
		defer close(done)
		defer ticker.Stop()
		for second := 0; ; second++ {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			for _, process := range all {
				if second%10 == 0 { // the chart's probe: each 10 s, with 1 s of time
					failed[process.Name]++
					probe, cancel := context.WithTimeout(ctx, time.Second)
					if process.Healthy(probe) {
						failed[process.Name] = 0
					}
					cancel()
				}
				if why := unwell(process, failed[process.Name]); why != "" && ctx.Err() == nil {
					t.Errorf("a kubelet starts %s anew: %s", process.Name, why)
					return
				}
			}
		}
	}()
	return all
}

// unwell says why a process of so many failed probes is started anew; "": it is not.
func unwell(process *harness.Process, probes int) string {
	if !process.Running() {
		return "it has ended:\n" + process.LogTail(20)
	}
	if peak, err := process.PeakMemory(); err == nil && peak > limit {
		return fmt.Sprintf("it held %d MiB, and may hold %d", peak>>20, limit>>20)
	}
	if probes >= 3 {
		return fmt.Sprintf("%d probes failed", probes)
	}
	return ""
}

// costs notes what processes have taken so far, and that none has panicked.
func (f *figures) costs(t *testing.T, all []*harness.Process) {
	t.Helper()
	f.peaks, f.seconds = map[string]int64{}, map[string]float64{}
	for _, process := range all {
		peak, err := process.PeakMemory()
		if err != nil {
			t.Error(err)
		}
		values, err := process.Metrics()
		if err != nil {
			t.Error(err)
		}
		f.peaks[process.Name], f.seconds[process.Name] = peak, values["process_cpu_seconds_total"]
		panics := harness.SumOf(values, "configstamp_panics_total") + harness.SumOf(values, "configstamp_admissions_total", `reason="panic"`) +
			harness.SumOf(values, "configstamp_impact_reviews_total", `result="panicked"`)
		if panics > 0 {
			t.Errorf("%s has panicked %v times:\n%s", process.Name, panics, process.LogTail(20))
		}
	}
}
