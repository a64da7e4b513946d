package controller

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
)

type recorded chan string

func (r recorded) Eventf(_, _ runtime.Object, _, _, _, note string, args ...any) {
	r <- fmt.Sprintf(note, args...)
}

// What cannot be told at once is told later, in order, and at the latest when
// the process ends.
func TestEventsArePacedAndNoneIsLost(t *testing.T) {
	const all = 2000
	told := make(recorded, all)
	p := newPaced(told)
	for i := range all {
		p.Eventf(nil, nil, "Normal", "ConfigChanged", actionReadmit, "%d", i)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.run(ctx)
	}()
	for range eventsAtOnce {
		<-told
	}
	time.Sleep(100 * time.Millisecond)
	if more := len(told); more > eventsPerSecond {
		t.Errorf("%d more events within a tenth of a second", more)
	}
	cancel()
	<-ended
	for i := eventsAtOnce; i < all; i++ {
		if text := <-told; text != fmt.Sprint(i) {
			t.Fatalf("event %s is told after %d", text, i-1)
		}
	}
}
