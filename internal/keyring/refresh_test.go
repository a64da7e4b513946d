package keyring

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
)

// synced is a keyring that knew the Secret at first and then stopped, so that
// only Refresh tells it more.
func synced(t *testing.T) (*installation, *Keyring) {
	in := newInstallation(t, map[string][]byte{name(-time.Hour): keyOf(1)})
	k, stop := in.start()
	in.eventually("a ring, and a second look, after the first list", func() bool {
		gets := 0
		for _, action := range in.client.Actions() {
			if action.GetVerb() == "get" {
				gets++
			}
		}
		return k.HasSynced() && gets >= 2
	})
	stop()
	return in, k
}

func (in *installation) countGets() *atomic.Int32 {
	var gets atomic.Int32
	in.intercept("get", func(clienttesting.Action) (bool, runtime.Object, error) {
		gets.Add(1)
		return false, nil, nil
	})
	return &gets
}

func TestRefreshFindsAKeyThatTheWatchHasNotBrought(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, k := synced(t)
		in.store(map[string][]byte{name(-time.Hour): keyOf(1), name(0): keyOf(2)})
		gets := in.countGets()
		for _, id := range []string{idOf(1), idOf(2), idOf(2)} {
			if found, err := k.Refresh(t.Context(), id); !found || err != nil {
				t.Errorf("key %s: %t, %v", id, found, err)
			}
		}
		if gets.Load() != 1 {
			t.Errorf("%d requests, want 1", gets.Load())
		}
	})
}

func TestRefreshOfALostKeyAsksOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, k := synced(t)
		gets := in.countGets()
		for range 5 {
			if found, err := k.Refresh(t.Context(), "00000000"); found || err != nil {
				t.Errorf("%t, %v", found, err)
			}
		}
		if gets.Load() != 1 {
			t.Errorf("%d requests, want 1", gets.Load())
		}
		if err := in.client.CoreV1().Secrets(namespace).Delete(in.ctx, secretName, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if found, err := k.Refresh(t.Context(), "00000001"); found || err != nil {
			t.Errorf("without a Secret: %t, %v", found, err)
		}
	})
}

func TestRefreshSharesRequestsAmongAnyIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, k := synced(t)
		gets := in.countGets()
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
		if most := 2 + int32(time.Since(begun)/lookupInterval); gets.Load() > most {
			t.Errorf("%d requests in %s, want at most %d", gets.Load(), time.Since(begun), most)
		}
		if n := len(k.lookups.absent); n > absentIDs {
			t.Errorf("%d ids are remembered", n)
		}
	})
}

func TestRefreshThatCannotTellSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, k := synced(t)
		in.intercept("get", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewServiceUnavailable("away")
		})
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
