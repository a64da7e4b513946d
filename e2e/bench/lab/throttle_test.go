package lab

import (
	"os"
	"path/filepath"
	"testing"
)

func TestAQuotaIsWrittenAsEachVersionOfCgroupsWantsIt(t *testing.T) {
	for about, c := range map[string]struct {
		cores   float64
		unified bool
		file    string
		want    string
	}{
		"version 1":           {0.25, false, "cpu.cfs_quota_us", "25000"},
		"version 1, no quota": {0, false, "cpu.cfs_quota_us", "-1"},
		"version 2":           {0.1, true, "cpu.max", "10000 100000"},
		"version 2, no quota": {0, true, "cpu.max", "max 100000"},
	} {
		t.Run(about, func(t *testing.T) {
			q := quota{dir: t.TempDir(), unified: c.unified}
			if err := q.set(c.cores); err != nil {
				t.Fatal(err)
			}
			if got, err := os.ReadFile(filepath.Join(q.dir, c.file)); err != nil || string(got) != c.want {
				t.Errorf("%s holds %q, %v, want %q", c.file, got, err, c.want)
			}
		})
	}
}
