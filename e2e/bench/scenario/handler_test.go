package scenario

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWhatGoTestPrintsIsRead(t *testing.T) {
	times, allocations := benchmarks(`goos: linux
BenchmarkAdmit/CREATE-2         	    9357	    162356 ns/op	 126.39 MB/s	   27833 B/op	     190 allocs/op
BenchmarkAdmit/CREATE-2         	    8599	    132642 ns/op	 154.70 MB/s	   27802 B/op	     191 allocs/op
BenchmarkAdmit/UPDATE/replicas  	    8292	   1284.5 ns/op	 330.18 MB/s	   18786 B/op	       0 allocs/op
BenchmarkOther/CREATE-2         	       1	         1 ns/op	       1 MB/s	       1 B/op	       1 allocs/op
PASS
`)
	if diff := cmp.Diff(map[string][]float64{"CREATE": {0.162356, 0.132642}, "UPDATE/replicas": {0.0012845}}, times); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string][]float64{"CREATE": {190, 191}, "UPDATE/replicas": {0}}, allocations); diff != "" {
		t.Error(diff)
	}
}

func TestScenariosHaveNamesOfTheirOwn(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range All() {
		if s.Name == "" || s.Title == "" || s.Method == "" || s.Run == nil || seen[s.Name] {
			t.Errorf("%q is not complete, or there twice", s.Name)
		}
		seen[s.Name] = true
	}
}
