package lifecycle

import (
	"slices"
	"testing"
)

// An argument that takes several values would have the old one and the new one.
func TestArgumentsTakeThePlaceOfThoseOfTheSameKey(t *testing.T) {
	was := []string{"/bin/kube-apiserver", "--etcd-servers=https://a:1", "--etcd-servers-overrides=x", "--v=2"}
	got := replaced(was, []string{"etcd-servers=https://b:2", "v=4", "new=a=b"})
	want := []string{"/bin/kube-apiserver", "--etcd-servers-overrides=x", "--etcd-servers=https://b:2", "--v=4", "--new=a=b"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if was[1] != "--etcd-servers=https://a:1" || len(was) != 4 {
		t.Errorf("what it was has become %q", was)
	}
}
