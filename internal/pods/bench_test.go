package pods

import (
	"fmt"
	"runtime"
	"testing"
	"time"
)

// many fills a room with pods, 50 of each of many templates.
func (h *house) many(t testing.TB, n int) {
	t.Helper()
	h.begin(true)
	for i := range n {
		pod := h.aPod("shop", i)
		pod.OwnerReferences[0].Name = fmt.Sprintf("web-%d-7d9", i/50)
		h.told(h.arrive(t, pod), false)
	}
}

// What one pod takes in memory, once it is known and proven.
func TestRoom_BytesOfAPod(t *testing.T) {
	const n = 20_000
	heap := func() float64 {
		runtime.GC()
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return float64(stats.HeapAlloc)
	}
	h, before := newHouse(t), heap()
	h.many(t, n)
	h.count(time.Now())
	each := (heap() - before) / n
	t.Logf("%.0f bytes for each of %d pods, %d templates", each, n, h.groups.len())
	if each > 300 {
		t.Errorf("a pod takes %.0f bytes", each)
	}
	runtime.KeepAlive(h)
}

// What it costs to count 50,000 pods, which is done every 15 seconds.
func BenchmarkCount(b *testing.B) {
	h := newHouse(b)
	h.many(b, 50_000)
	h.count(time.Now())
	for b.Loop() {
		h.count(time.Now())
	}
}

// What it costs when one pod arrives.
func BenchmarkArrives(b *testing.B) {
	h := newHouse(b)
	h.begin(true)
	message, err := h.aPod("shop", 1).Marshal()
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		object, err := h.message(message)
		if err != nil {
			b.Fatal(err)
		}
		h.told(object.(*arrived), false)
	}
}

// What it costs when a pod of a namespace that is not opted in arrives.
func BenchmarkPasses(b *testing.B) {
	h := newHouse(b)
	message, err := h.aPod("other", 1).Marshal()
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := h.message(message); err != nil {
			b.Fatal(err)
		}
	}
}
