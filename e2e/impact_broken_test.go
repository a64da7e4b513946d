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
	"github.com/configstamp/configstamp/e2e/proxy"
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
			w.write(t, wrong.clients, wrong.each, nil)
			wrong.end()
		})
	}
	t.Run("both are restarted, over and over", func(t *testing.T) {
		over := make(chan struct{})
		var writing sync.WaitGroup
		defer writing.Wait()
		defer close(over)
		writing.Go(func() { w.write(t, 4, 1<<20, over) })
		for round := range 4 {
			for _, controller := range product.Controllers {
				end := controller.Stop
				if round%2 == 1 {
					end = controller.Kill
				}
				harness.Must(t, end())
				harness.Must(t, controller.Start(product.Args(controller)))
				time.Sleep(300 * time.Millisecond)
			}
		}
	})
	t.Run("a follower is behind", func(t *testing.T) { w.aFollowerIsBehind(t, run, product) })
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

// write has clients give a ConfigMap each other content, so many times or until it is
// over, and checks that each write is allowed, and soon.
func (w *writers) write(t *testing.T, clients, each int, over <-chan struct{}) {
	t.Helper()
	var mu sync.Mutex
	var took []time.Duration
	var writing sync.WaitGroup
	for client := range clients {
		writing.Go(func() {
			for i := range each {
				select {
				case <-over:
					return
				case <-time.After(writersPause):
				}
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
	slices.Sort(took)
	at := func(percent int) time.Duration { return took[(len(took)-1)*percent/100].Round(time.Millisecond) }
	t.Logf("%d writes: median %s, p99 %s, longest %s", len(took), at(50), at(99), at(100))
	if longest := took[len(took)-1]; longest > longestWait {
		t.Errorf("a write took %s, want at most %s", longest, longestWait)
	}
}

// aFollowerIsBehind has writes ask the controller that does not lead, whose watches
// deliver nothing.
func (w *writers) aFollowerIsBehind(t *testing.T, run *harness.Run, product *harness.Product) {
	harness.Must(t, run.ForgetLeader(t.Context())) // who was killed has the lease
	harness.Must(t, product.Start(t.Context()))
	s := w.s.In(t)
	var leader *harness.Process
	s.Eventually("waiting for a leader", func() error {
		if leader = product.Leader(); leader == nil {
			return fmt.Errorf("nobody leads")
		}
		return nil
	})
	follower := 1 - slices.Index(product.Controllers, leader)
	gate := &proxy.Gate{}
	gate.Close()
	t.Cleanup(gate.Open) // what waits at it would wait for ever
	product.Controllers[follower].Proxy.Add(proxy.Rule{Match: proxy.Matching("watch", ""), Gate: gate})
	product.Controllers[follower].Proxy.Cut(proxy.Matching("watch", "configmaps,deployments"))
	product.Impact.Only(follower)
	s.Create(deployment("new", "configmap/c0")) // which it does not know
	w.write(t, 4, 25, nil)
	if result := s.Kubectl("patch", "configmap/c0", "-p", `{"data":{"k":"by kubectl"}}`); len(result.Warnings()) > 1 {
		t.Errorf("warnings: %q", result.Warnings())
	}
	gate.Open()
	product.Impact.Release()
}
