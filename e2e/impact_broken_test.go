package e2e

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configstamp/configstamp/e2e/harness"
)

// longestWait is the second that the API server waits for a warning, and what a machine
// of two cores that runs everything adds to it.
const longestWait = 2 * time.Second

// Whatever is wrong with the processes that warn: every write is allowed, and none waits
// longer than the second.
func TestImpact_IsNeverInTheWay(t *testing.T) {
	product := run.Exclusive(t)
	run := run.Of(t)
	s := run.Space(t)
	w := &writers{s: s, config: run.Client.CoreV1().ConfigMaps(s.Namespace).Update}
	var sources []string
	for client := range writersAtOnce {
		sources = append(sources, fmt.Sprintf("configmap/c%d", client))
		s.Set(sources[client], "k", "0")
	}
	s.Create(deployment("d", sources...))
	s.Settled("deployment/d")
	controllers := func(do func(*harness.Process)) {
		for _, controller := range product.Controllers {
			do(controller)
		}
	}
	start := func() { harness.Must(t, product.Start(t.Context())) }
	wrong := []struct {
		name          string
		clients, each int
		begin, end    func()
	}{
		{"nothing is wrong", 4, 25, func() {}, func() {}},
		{"both are stopped", 4, 25, func() { controllers(func(p *harness.Process) { harness.Must(t, p.Stop()) }) }, start},
		{"both are killed", 4, 25, func() { controllers(func(p *harness.Process) { harness.Must(t, p.Kill()) }) }, start},
		{"both hang", writersAtOnce, 3, func() { controllers((*harness.Process).Freeze) }, func() { controllers((*harness.Process).Thaw) }},
		{"connections are accepted, and nobody answers", writersAtOnce, 3, product.Impact.Hold, product.Impact.Release},
	}
	for _, wrong := range wrong {
		t.Run(wrong.name, func(t *testing.T) {
			wrong.begin()
			w.write(t, wrong.clients, wrong.each)
			wrong.end()
		})
	}
}

// writersAtOnce write a ConfigMap each, with a pause: the API server asks again, and waits
// again, when one was written a moment ago or meanwhile.
const (
	writersAtOnce = 8
	writersPause  = 100 * time.Millisecond
)

// writers write ConfigMaps that a workload uses.
type writers struct {
	s      *harness.Space
	config func(context.Context, *corev1.ConfigMap, metav1.UpdateOptions) (*corev1.ConfigMap, error)
}

// write has clients give a ConfigMap each other content, so many times, and checks that
// each write is allowed, and soon.
func (w *writers) write(t *testing.T, clients, each int) {
	t.Helper()
	var mu sync.Mutex
	var took []time.Duration
	var writing sync.WaitGroup
	for client := range clients {
		writing.Go(func() {
			for i := range each {
				time.Sleep(writersPause)
				began := time.Now()
				_, err := w.config(t.Context(), &corev1.ConfigMap{
					ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("c%d", client)}, Data: map[string]string{"k": fmt.Sprint(t.Name(), i)},
				}, metav1.UpdateOptions{})
				elapsed := time.Since(began)
				if err != nil {
					t.Errorf("a write is denied: %v", err)
				}
				mu.Lock()
				took = append(took, elapsed)
				mu.Unlock()
			}
		})
	}
	writing.Wait()
	if longest := slices.Max(took); longest > longestWait {
		t.Errorf("a write took %s, want at most %s", longest, longestWait)
	}
}
