package source

import (
	"slices"
	"testing"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/cache/follow/fakeapi"
)

// What people should know of a source is kept while it stands, and nothing of those of which
// there is nothing to know.
func TestFindingsStandAsLongAsTheirSources(t *testing.T) {
	server := fakeapi.New(t)
	store, _ := newStore(t, server)
	reasons := func() (all []string) {
		store.Findings(func(namespace string, source checksum.Source, found []checksum.Finding) {
			for _, finding := range found {
				all = append(all, namespace+" "+source.String()+" "+finding.Reason.String())
			}
		})
		slices.Sort(all)
		return all
	}
	become := func(want ...string) {
		t.Helper()
		fakeapi.Eventually(t, "the findings are as wanted", func() bool { return slices.Equal(reasons(), want) })
	}
	cm := configMap("shop", "web", map[string]string{"a": "1"})
	cm.Labels = map[string]string{checksum.SnapshotLabel: "true"}
	cm.Annotations = map[string]string{"configstamp.dev/ignore": "maybe", "kubectl.kubernetes.io/last-applied-configuration": "{}"}
	server.Put("configmaps", cm)
	server.Put("configmaps", configMap("shop", "plain", map[string]string{"a": "1"}))
	run(t, store)
	become("shop configmap/web not-a-snapshot", "shop configmap/web unreadable-setting")
	bad := secret("shop", "token", "hunter2")
	bad.Annotations = map[string]string{"configstamp.dev/ignore": "maybe", "configstamp.dev/resume": "2999-01-01T00:00:00Z"}
	server.Put("secrets", bad)
	cm.Labels, cm.Annotations = nil, map[string]string{"configstamp.dev/ignore": "true"}
	server.Put("configmaps", cm)
	become("shop secret/token resume-ahead", "shop secret/token unreadable-setting")
	server.Delete("secrets", "shop", "token")
	become()

	// After a gap of the watch, too.
	server.Put("secrets", bad)
	become("shop secret/token resume-ahead", "shop secret/token unreadable-setting")
	server.Compact()
	server.CutWatches()
	server.Delete("secrets", "shop", "token")
	become()
}
