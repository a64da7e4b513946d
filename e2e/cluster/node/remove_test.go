package node

import (
	"slices"
	"testing"
)

func TestMountsBelow(t *testing.T) {
	const mountinfo = `22 1 0:20 / / rw - ext4 /dev/vda rw
40 22 0:33 / /state/one/kubelet/pods/a/volumes/x rw shared:1 - tmpfs tmpfs rw
41 22 0:34 / /state/one-more/kubelet rw - tmpfs tmpfs rw
42 22 0:35 / /run/one/a\040b rw - overlay overlay rw
43 40 0:36 / /state/one/kubelet/pods/a/volumes/x/y rw - tmpfs tmpfs rw
`
	got := mountsBelow(mountinfo, "/state/one", "/run/one")
	want := []string{"/state/one/kubelet/pods/a/volumes/x/y", "/run/one/a b", "/state/one/kubelet/pods/a/volumes/x"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
