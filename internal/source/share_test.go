package source

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/configstamp/configstamp/checksum"
)

// Every answer has to come of a read that began after it was asked for.
func TestASharedReadIsNeverOlderThanTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSharing[Record](time.Minute, 16)
		var clock, reads atomic.Int64
		look := func(context.Context) (Record, error) {
			reads.Add(1)
			began := clock.Add(1)
			time.Sleep(time.Millisecond)
			return Record{ResourceVersion: strconv.FormatInt(began, 10)}, nil
		}
		var group sync.WaitGroup
		for range 50 {
			group.Go(func() {
				for range 20 {
					asked := clock.Add(1)
					record, err := s.do(t.Context(), place{"shop", web}, look)
					began, _ := strconv.ParseInt(record.ResourceVersion, 10, 64)
					if err != nil || began < asked {
						t.Errorf("asked at %d, answered by a read that began at %d, %v", asked, began, err)
					}
				}
			})
		}
		group.Wait()
		if n := reads.Load(); n > 500 {
			t.Errorf("%d reads for 1000 requests of 50 at a time: nothing is shared", n)
		}
		synctest.Wait()
		if left := len(s.lines); left > 0 {
			t.Fatalf("%d lines are left", left)
		}
	})
}

func TestASharedReadOutlivesTheRequestThatBeganIt(t *testing.T) {
	s := newSharing[Record](time.Minute, 16)
	begun, goOn := make(chan struct{}, 2), make(chan struct{})
	look := func(ctx context.Context) (Record, error) {
		begun <- struct{}{}
		<-goOn
		return Record{ResourceVersion: "7"}, ctx.Err()
	}
	impatient, leave := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		_, err := s.do(impatient, place{"shop", web}, look)
		left <- err
	}()
	<-begun
	answered := make(chan error, 1)
	go func() {
		_, err := s.do(t.Context(), place{"shop", web}, look)
		answered <- err
	}()
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("who left got %v", err)
	}
	// Another source does not wait for this one.
	if _, err := s.do(t.Context(), place{"shop", token}, func(context.Context) (Record, error) { return Record{}, nil }); err != nil {
		t.Error(err)
	}
	close(goOn)
	if err := <-answered; err != nil {
		t.Errorf("who stayed got %v", err)
	}
}

func TestASharedReadThatHangsIsBounded(t *testing.T) {
	s := newSharing[Record](time.Minute, 16)
	s.timeout = 10 * time.Millisecond
	_, err := s.do(t.Context(), place{"shop", web}, func(ctx context.Context) (Record, error) {
		<-ctx.Done()
		return Record{}, ctx.Err()
	})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestAPanicInASharedReadIsAnError(t *testing.T) {
	s := newSharing[Record](time.Second, 1)
	for range 2 { // the second finds the way free
		_, err := s.do(t.Context(), place{"shop", checksum.Source{Kind: checksum.Secret, Name: "db"}}, func(context.Context) (Record, error) {
			panic("hunter2")
		})
		if err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "secret/db") {
			t.Fatalf("%v", err)
		}
	}
}
