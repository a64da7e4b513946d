package pods

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configstamp/configstamp/e2e/harness"
)

// P3: nor does anything restart that is pinned, or is to be, when pins are switched off and on,
// at upgrades, when the key changes, or by uninstalling; what pods read stays there.
func TestNothingRestarts_WithPins(t *testing.T) {
	const on, off = "--set=pins.enabled=true", "--set=pins.enabled=false"
	harness.Must(t, cluster.LoadImage(t.Context(), "configstamp:next", "next"))
	release(t, "dev", "install", "--create-namespace", on)
	inst := &installed{t: t, edited: cluster.Space(t), still: []*harness.Space{cluster.Space(t), cluster.PlainSpace(t)}}
	for _, s := range append([]*harness.Space{inst.edited}, inst.still...) {
		s.SetPolicy("namespace", map[string]string{"pin": "true"})
	}
	inst.begin()
	pinned := inst.snapshots()
	if pinned == 0 {
		t.Fatal("nothing is pinned")
	}
	inst.during("switching pins off", func() { release(t, "dev", "upgrade", off) })
	inst.during("switching pins on", func() { release(t, "dev", "upgrade", on) })
	inst.during("an upgrade", func() { release(t, "next", "upgrade", on) })
	inst.during("another key", func() { rotateKey(t) })
	inst.during("uninstalling", func() {
		_, err := cluster.Helm(t.Context(), "uninstall", "configstamp", "--namespace", harness.OwnNamespace, "--wait")
		harness.Must(t, err)
		wantNoTrace(t)
	}, alone)
	if left := inst.snapshots(); left < pinned {
		t.Errorf("%d of %d snapshots are left after uninstalling", left, pinned)
	}
}

// snapshots counts those in the namespaces in which nothing restarts.
func (i *installed) snapshots() (count int) {
	i.t.Helper()
	for _, s := range i.still {
		list, err := cluster.Client.CoreV1().ConfigMaps(s.Namespace).List(i.t.Context(), metav1.ListOptions{LabelSelector: "configstamp.dev/snapshot=true"})
		harness.Must(i.t, err)
		count += len(list.Items)
	}
	return count
}
