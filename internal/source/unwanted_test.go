package source

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/configstamp/configstamp/checksum"
)

// Requests that have given up leave reads that are sent all the same, and hold slots before those who still wait.
func TestReadsThatNobodyWaitsForAreNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSharing[Record](10*time.Second, 6) // Own: ownPatience, ownParallel
		var sent atomic.Int64
		look := func(context.Context) (Record, error) {
			sent.Add(1)
			time.Sleep(time.Second)
			return Record{}, nil
		}
		for i := range 96 { // 16 re-admissions, 6 under way each, as together does it
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), 1875*time.Millisecond) // within, timeoutSeconds 3
				defer cancel()
				_, _ = s.do(ctx, place{"shop", checksum.Source{Kind: checksum.ConfigMap, Name: fmt.Sprint(i)}}, look)
			}()
		}
		time.Sleep(1900 * time.Millisecond) // all have given up
		synctest.Wait()
		before := sent.Load()
		ctx, cancel := context.WithTimeout(t.Context(), 1875*time.Millisecond)
		defer cancel()
		_, err := s.do(ctx, place{"shop", web}, look)
		if err != nil {
			t.Errorf("one that asks alone gets no slot: %v", err)
		}
		time.Sleep(time.Minute)
		if n := sent.Load() - before; n > 8 {
			t.Errorf("%d reads are sent for one request; nobody waits for the others", n)
		}
	})
}
