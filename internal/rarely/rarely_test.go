package rarely

import (
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// TestLimit_IsBounded: each object has its own count, what is seen often is remembered
// among many that are seen once, and memory has a bound.
func TestLimit_IsBounded(t *testing.T) {
	var all Limit
	now := time.Now()
	announced := 0
	for i := range 10 * kept {
		if all.Again(types.UID(strconv.Itoa(i)), 5, 10*time.Minute, now) {
			t.Fatal("announced a workload that lost its stamps once")
		}
		if i%1000 == 0 && all.Again("often", 5, 10*time.Minute, now) {
			announced++
		}
		if n := len(all.young) + len(all.old); n > kept {
			t.Fatalf("%d workloads are remembered", n)
		}
	}
	if announced != 1 {
		t.Errorf("announced %d times, want once", announced)
	}
}
