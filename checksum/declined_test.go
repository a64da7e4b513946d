package checksum_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/reason"
)

// reviewed is a review in one line.
func reviewed(t *testing.T, in *checksum.Ring, held checksum.Records, now world) string {
	t.Helper()
	policy := pinningPolicy()
	review := in.Review(namespace, &policy, checksum.Selections(reads, policy), held, func(s checksum.Source) *checksum.Content { return now[s] })
	line := fmt.Sprintf("untrue %v declined %v to decline %v lost %v", review.Untrue, review.Declined, review.ToDecline, review.Lost)
	return strings.NewReplacer("[]", "-", "configmap/web-", "").Replace(line)
}

// recorded is what a recording makes of it.
func recorded(t *testing.T, in *checksum.Ring, held checksum.Records, now world) checksum.Records {
	t.Helper()
	a := admissionCase{
		Namespace: namespace, Asker: checksum.Recorder, Fresh: true, Pinning: true, Policy: pinningPolicy(), References: reads, Held: held, Sent: held,
		Content: func(s checksum.Source) *checksum.Content { return now[s] },
	}
	a.Selections = checksum.Selections(reads, a.Policy)
	got := decide(in, a)
	if got.Outcome != reason.Recorded || !maps.Equal(got.Records.Stamps, held.Stamps) || !maps.Equal(got.Records.Pins, held.Pins) {
		t.Errorf("the recording is %s, and leaves %v", got.Outcome, got.Records)
	}
	a.Held, a.Sent = got.Records, got.Records
	if again := decide(in, a); again.Outcome != reason.Kept {
		t.Errorf("a second recording is %s", again.Outcome)
	}
	return got.Records
}

// "A declined value that cannot be compared any more is rewritten to today's; it restarts
// nothing." Content that changes afterwards rolls again.
func TestDeclinedValuesThatCannotBeCompared(t *testing.T) {
	undone := declining(present.pinned(), edited) // under key 2
	undone.Declined = checksum.Declined{message: {edited.values(key(1), message)[message]}}.String()
	newer := checksum.NewRing(key(2)) // key 1 is lost

	check := func(in *checksum.Ring, held checksum.Records, now world, want string) {
		t.Helper()
		if got := reviewed(t, in, held, now); got != want {
			t.Errorf("it is %q, want %q", got, want)
		}
	}
	const nothing = "untrue - declined - to decline - lost -"

	// Its key is lost, that of the record is not.
	check(ring, undone, edited, "untrue - declined [message] to decline - lost -")
	check(newer, undone, edited, "untrue - declined [message] to decline [message] lost -")
	anew := recorded(t, newer, undone, edited)
	if want := declining(present.pinned(), edited); anew.Declined != want.Declined {
		t.Errorf("declined is %s, want %s", anew.Declined, want.Declined)
	}
	check(newer, anew, edited, "untrue - declined [message] to decline - lost -")
	check(newer, anew, thirdly, "untrue [message] declined - to decline - lost -")
	check(newer, anew, present, nothing)

	// What is on record is true: what cannot be compared is forgotten, and the next change
	// rolls.
	check(newer, undone, present, "untrue - declined - to decline [message] lost -")
	anew = recorded(t, newer, undone, present)
	if anew.Declined != "" {
		t.Errorf("declined is %s", anew.Declined)
	}
	check(newer, anew, thirdly, "untrue [message] declined - to decline - lost -")

	// Both are lost: what is there now is recorded anew.
	both := undone
	both.Stamps = stampsOf(union(present.values(key(1), message), present.values(key(2), password, extra)))
	check(newer, both, edited, "untrue - declined - to decline [message] lost [message]")
	anew = recorded(t, newer, both, edited)
	check(newer, anew, edited, nothing)
	check(newer, anew, thirdly, "untrue [message] declined - to decline - lost -")

	// The key of the record alone is lost.
	check(newer, declining(both, edited), edited, "untrue - declined [message] to decline - lost -")
}

// ignoring is a world whose message ignores some keys.
func (w world) ignoring(keys ...string) world {
	w = maps.Clone(w)
	content := text("a", "1")
	content.Entries = w[message].Entries
	content.Policy = &checksum.SourcePolicy{IgnoreKeys: keys}
	w[message] = content
	return w
}

func TestDeclinedValuesOfAnotherSelection(t *testing.T) {
	before, bad, good := present.ignoring("b*"), edited.ignoring("b*"), thirdly.ignoring("b*")
	undone := declining(before.pinned(), bad)
	for _, c := range []struct {
		now  world
		want string
	}{
		{bad, "untrue - declined [message] to decline - lost -"},
		{good, "untrue [message] declined - to decline - lost -"},
		// Other keys are ignored now: nothing can be compared, and nothing restarts.
		{edited.ignoring("c*"), "untrue - declined [message] to decline [message] lost -"},
	} {
		if got := reviewed(t, ring, undone, c.now); got != c.want {
			t.Errorf("it is %q, want %q", got, c.want)
		}
	}
	anew := recorded(t, ring, undone, edited.ignoring("c*"))
	for _, c := range []struct {
		now  world
		want string
	}{
		{edited.ignoring("c*"), "untrue - declined [message] to decline - lost -"},
		{thirdly.ignoring("c*"), "untrue [message] declined - to decline - lost -"},
		// That is what the pinned snapshot holds.
		{present.ignoring("c*"), "untrue - declined - to decline - lost -"},
	} {
		if got := reviewed(t, ring, anew, c.now); got != c.want {
			t.Errorf("then it is %q, want %q", got, c.want)
		}
	}
}

// adopt: restart rolls what is found without stamps, but not to what somebody has declined.
func TestDeclinedContentIsNotAdopted(t *testing.T) {
	policy := pinningPolicy()
	policy.RestartUnstamped = true
	held := declining(checksum.Records{}, edited)
	review := ring.Review(namespace, &policy, checksum.Selections(reads, policy), held, func(s checksum.Source) *checksum.Content { return edited[s] })
	if len(review.Untrue) > 0 || len(review.ToRecord) != len(reads) {
		t.Errorf("reviewed as %+v", review)
	}
}

// What does not fit is not written, and it is said.
func TestDeclinedThatDoesNotFit(t *testing.T) {
	a := undoing(edited.pinned(), present.pinned())
	a.Namespace, a.Fresh, a.References, a.Pinning, a.Policy, a.WorkloadBytes = namespace, true, reads, true, pinningPolicy(), 240<<10-10
	a.Selections = checksum.Selections(reads, a.Policy)
	a.Content = func(s checksum.Source) *checksum.Content { return edited[s] }
	got := decide(ring, a)
	if got.Records.Declined != "" || got.Outcome != reason.TooLarge || !slices.ContainsFunc(got.Findings, func(f checksum.Finding) bool { return f.Reason == reason.TooLarge }) {
		t.Errorf("it is %s: %v, %v", got.Outcome, got.Records, got.Findings)
	}
}

// If what is recorded stays because the decision does not fit, so do its pins, and no snapshot is needed.
func TestDeclinedThatDoesNotFit_LeavesPins(t *testing.T) {
	held := present.pinned()
	now := world{message: edited[message], password: text("password", "q")}
	held.Declined = checksum.Declined{password: {now.values(key(1), password)[password]}}.String()
	a := admissionCase{
		Namespace: namespace, Asker: checksum.Roller, Fresh: true, Pinning: true, Policy: pinningPolicy(), References: reads, WorkloadBytes: 240<<10 - 10,
		Held: held, Sent: held, Content: func(s checksum.Source) *checksum.Content { return now[s] }, Unmade: map[checksum.Source]reason.Reason{message: reason.SnapshotQuota},
	}
	a.Selections = checksum.Selections(reads, a.Policy)
	if got := decide(checksum.NewRing(key(2)), a); got.Outcome != reason.TooLarge || !got.Records.Equal(held) || len(got.NewPins) > 0 {
		t.Errorf("it is %s, needs snapshots of %v, and leaves %v", got.Outcome, got.NewPins, got.Records)
	}
}
