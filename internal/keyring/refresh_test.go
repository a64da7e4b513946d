package keyring

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// synced is a keyring that knew the Secret at first and then stopped, so that
// only Refresh tells it more.
func synced(t *testing.T) (*installation, *Keyring) {
	in := newInstallation(t, map[string][]byte{name(-time.Hour): keyOf(1)})
	k, stop := in.start()
	gets := 0
	in.eventually("a ring, and a second look, after the first list", func() bool {
		for _, request := range in.Requests() {
			if strings.HasSuffix(request, "/"+secretName) {
				gets++
			}
		}
		return k.HasSynced() && gets >= 2
	})
	stop()
	in.Requests()
	return in, k
}

func TestRefreshFindsAKeyThatTheWatchHasNotBrought(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, k := synced(t)
		in.store(map[string][]byte{name(-time.Hour): keyOf(1), name(0): keyOf(2)})
		for _, id := range []string{idOf(1), idOf(2), idOf(2)} {
			if found, err := k.Refresh(t.Context(), id); !found || err != nil {
				t.Errorf("key %s: %t, %v", id, found, err)
			}
		}
		if n := len(in.Requests()); n != 1 {
			t.Errorf("%d requests, want 1", n)
		}
	})
}

func TestRefreshOfALostKeyAsksOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, k := synced(t)
		for range 5 {
			if found, err := k.Refresh(t.Context(), "00000000"); found || err != nil {
				t.Errorf("%t, %v", found, err)
			}
		}
		if n := len(in.Requests()); n != 1 {
			t.Errorf("%d requests, want 1", n)
		}
		in.Delete("secrets", namespace, secretName)
		if found, err := k.Refresh(t.Context(), "00000001"); found || err != nil {
			t.Errorf("without a Secret: %t, %v", found, err)
		}
	})
}

func TestRefreshSharesRequestsAmongAnyIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, k := synced(t)
		begun := time.Now()
		var asking sync.WaitGroup
		for i := range 2000 {
			asking.Go(func() {
				if found, err := k.Refresh(t.Context(), fmt.Sprintf("%08x", i)); found || err != nil {
					t.Errorf("%t, %v", found, err)
				}
			})
		}
		asking.Wait()
		if n, most := len(in.Requests()), 2+int(time.Since(begun)/lookupInterval); n > most {
			t.Errorf("%d requests in %s, want at most %d", n, time.Since(begun), most)
		}
		if n := len(k.lookups.absent); n > absentIDs {
			t.Errorf("%d ids are remembered", n)
		}
	})
}

func TestRefreshThatCannotTellSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, k := synced(t)
		in.Refuse("GET", errAway)
		if found, err := k.Refresh(t.Context(), "00000000"); found || !apierrors.IsServiceUnavailable(err) {
			t.Errorf("%t, %v", found, err)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if found, err := k.Refresh(ended, "00000000"); found || err == nil {
			t.Errorf("%t, %v", found, err)
		}
	})
}
