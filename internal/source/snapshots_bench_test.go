package source

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/configstamp/configstamp/checksum"
)

// BenchmarkSnapshotMemory measures the heap that 5,000 snapshots take, of 100 ConfigMaps with
// three keys and 2 KiB each, and what each takes in protobuf as we send it. etcd holds more: managedFields are missing here:
// go test -bench SnapshotMemory -benchtime 1x
func BenchmarkSnapshotMemory(b *testing.B) {
	const snapshots, maps = 5_000, 100
	ring := testRing(b)
	for b.Loop() {
		written, plain := 0, 0
		before := heap()
		c := &condenser{clock: clock.RealClock{}}
		s := newSink(checksum.ConfigMap, clock.RealClock{}, nil)
		items := make([]any, 0, snapshots)
		for i := range snapshots {
			cm := configMap("shop", fmt.Sprintf("web-message-%d", i%maps), map[string]string{
				"a": fmt.Sprint(i), "b": strings.Repeat("x", 1000), "c": strings.Repeat("y", 1000),
			})
			snapshot := snapshotOf(ring, cm)
			snapshot.UID, snapshot.ResourceVersion = types.UID(fmt.Sprintf("%08d-0000-0000-0000-000000000000", i)), fmt.Sprint(10_000_000+i)
			message, err := snapshot.Marshal()
			if err != nil {
				b.Fatal(err)
			}
			written, plain = written+len(message), plain+cm.Size()
			object, err := c.condense("ConfigMap", message)
			if err != nil {
				b.Fatal(err)
			}
			items = append(items, object)
		}
		_ = s.Replace(items, "20000000")
		clear(items)
		b.ReportMetric(float64(heap()-before)/snapshots, "heap-bytes/snapshot")
		b.ReportMetric(float64(written)/snapshots, "protobuf-bytes/snapshot")
		b.ReportMetric(float64(plain)/snapshots, "protobuf-bytes/source")
		if n := s.len(); n != 0 {
			b.Fatalf("%d snapshots are sources", n)
		}
		runtime.KeepAlive(s)
	}
}
