package rollouts

import (
	"fmt"
	"testing"
	"time"

	"github.com/configstamp/configstamp/e2e/harness"
)

// A failure belongs to its source: whoever has failed takes what comes next, and nobody else.

// sets gives the source other content, as a part of the last edit.
func (f *fleet) sets(word string) {
	f.t.Helper()
	*f.edits++
	harness.Must(f.t, f.Set(source, content(fmt.Sprintf("%s-%d", word, *f.edits))))
}

// wantMended gives the source good content, and waits until all of the fleet has rolled to it. The Services
// of the lost workloads may have been without an endpoint before.
func (f *fleet) wantMended(lost ...string) {
	f.t.Helper()
	f.edit("good")
	f.wantAllRoll()
	f.wantServing()
	f.wantServed(lost...)
	f.wantTruth()
}

func TestABotThatWritesBadContentReachesOne(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 4, strict)
	f.edit("bad")
	failed := f.wantFailed()
	for range 6 {
		time.Sleep(20 * time.Second)
		f.sets("bad")
		f.wantUntouched(failed)
	}
	f.wantStill(failed)
	f.wantMended()
}

func TestFiveBadFixesReachOne(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 4, strict)
	f.edit("bad")
	failed := f.wantHalt()
	for range 5 {
		f.sets("bad")
		f.wantStill(failed)
	}
	f.wantMended()
}

// Another one of the name of the failed one goes on where that was. While there is none, nobody
// tries in its place: CI may be about to make it.
func TestTheFailedOneIsDeletedAndMadeAgain(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 4, strict)
	f.edit("bad")
	failed := f.wantHalt()
	for range 2 {
		harness.Must(t, f.Delete(failed))
		f.wantStill(failed)
		harness.Must(t, f.Create(strict(0).manifest(t, appOf(failed))))
		f.wantStill(failed)
	}
	f.edit("good")
	f.wantAllRoll()
	f.wantServing()
	f.wantTruth()
}
