package pins

import (
	"fmt"
	"testing"
	"time"
)

// crowd are twenty workloads of all kinds, and each way of reading, alone and together.
func crowd() []member {
	members := []member{{kind: "Deployment", app: "first", manner: "strict", ways: ways, order: "-1"}}
	for i := 1; i < 20; i++ {
		kind := []string{"Deployment", "StatefulSet", "DaemonSet"}[i%3]
		reads := ways
		if i%6 < len(ways) {
			reads = ways[i%6 : i%6+1]
		}
		members = append(members, member{kind: kind, app: fmt.Sprintf("app-%02d", i), ways: reads, optional: i%4 == 0})
	}
	return members
}

// P1: a change is halted by the first of twenty workloads. Whatever befalls the pods of the
// others, each container that starts reads the old content, in every way; and so it does in
// a pause. Undo mends the first, and the fix rolls to all.
func TestHeldPodsKeepTheirContent(t *testing.T) {
	t.Parallel()
	r := newRoom(t, "first word", crowd()...)
	held := without(r.members, "first")
	for i := range r.members {
		r.wantPinned(&r.members[i], true)
	}

	before := r.space.Counts()
	r.write("a bad word")
	r.wantHalt()
	r.befall(*times-*times/2, "first word", held)
	r.wantStill("first word", held) // files that nobody touched, too
	for name, count := range r.space.Counts() {
		if name != "deployment/first" && (count.Rolls != before[name].Rolls || count.Revisions != before[name].Revisions) {
			t.Errorf("%s was held, and rolled: %+v, before %+v", name, count, before[name])
		}
	}

	said := r.space.Kubectl("rollout", "undo", "deployment/first")
	t.Logf("kubectl rollout undo: %q", said.Warnings())
	r.wantAll("first word")
	r.wantStill("first word", held)

	r.write("second word")
	r.wantAll("second word")

	r.space.SetPolicy("namespace", map[string]string{"pause": "true"})
	time.Sleep(2 * time.Second)
	r.write("third word")
	time.Sleep(3 * time.Second)
	r.befall(*times/2, "second word", r.members)
	r.wantStill("second word", r.members)
	r.space.DropPolicy("namespace", map[string]string{"pause": ""})
	r.wantAll("third word")
}

// wantHalt waits until a change is halted, for the first time.
func (r *room) wantHalt() {
	r.t.Helper()
	r.wantEvent(source, "ChangeHalted")
}
