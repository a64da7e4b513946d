package rollouts

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/e2e/harness"
	"github.com/configstamp/configstamp/e2e/rollouts/timeline"
	"github.com/configstamp/configstamp/internal/report"
)

// Both controllers are killed ten times while a change is halted, also before the new leader knows of the halt. No version
// of the report counts more workloads as done or failed than templates and pods show at that moment, and none of the halt
// is Settling or Complete.
func TestReportsWhileControllersAreKilled(t *testing.T) {
	court.Run.Exclusive(t)
	f := newFleet(t, 5, strict)
	f.retold = true
	versions := harness.Record(t, f.reports())

	f.edit("bad")
	began := f.since
	failed := f.wantHalt()
	bad, halted := f.space.WantReport(source, report.Halted, nil), f.now()
	for n := range 10 {
		replaceControllers(t)
		if n%2 == 0 {
			f.wantGauge(1, "configstamp_changes", `state="halted"`)
			continue
		}
		f.space.Eventually("waiting for a leader", func() error {
			if court.Run.Product.Leader() == nil {
				return errors.New("there is none")
			}
			return nil
		})
	}
	f.wantGauge(1, "configstamp_changes", `state="halted"`)
	f.wantStill(failed)
	ended := f.now()
	f.takeBack()
	f.wantServing()
	f.space.WantReport(source, report.Complete, nil)
	harness.Must(t, court.Witness.CatchUp(t.Context(), f.Namespace))

	seen, count, inHalt := f.seen(), 0, 0
	for _, object := range versions() {
		read, err := harness.ReportIn(object)
		harness.Must(t, err)
		version, err := strconv.ParseInt(read.ResourceVersion, 10, 64)
		harness.Must(t, err)
		ready := meta.FindStatusCondition(read.Status.Conditions, report.Ready)
		if ready == nil {
			continue // it was made, and has no status yet
		}
		count++
		then := until(seen, version)
		old, crashed := f.unchanged(seen, then, began), 0
		for _, name := range f.names {
			if _, crashes := then.Crashed(began, f.Namespace+"/"+name); crashes {
				crashed++
			}
		}
		most := old
		if read.Status.EditedAt.Equal(bad.Status.EditedAt) {
			most = len(f.names) - old
		}
		if int(read.Status.Done) > most || int(read.Status.Failed) > crashed {
			t.Errorf("version %d says %d done and %d failed; %d have the content, and the pods of %d crash: %+v", version, read.Status.Done, read.Status.Failed, most, crashed, read.Status)
		}
		if version > int64(halted) && version <= int64(ended) {
			inHalt++
			if ready.Reason != string(report.Halted) && ready.Reason != string(report.Rolling) {
				t.Errorf("version %d is %s during the halt", version, ready.Reason)
			}
		}
	}
	t.Logf("%d versions, %d of them while the change was halted and leaders changed", count, inHalt)
	if count < 3 {
		t.Errorf("only %d versions were seen", count)
	}
}

// reports is a client of the fleet's reports.
func (f *fleet) reports() dynamic.ResourceInterface {
	return court.Run.Dynamic.Resource(report.GroupVersion().WithResource(report.Resource)).Namespace(f.Namespace)
}

// until are the events up to a version.
func until(events timeline.Events, version int64) (then timeline.Events) {
	for _, event := range events {
		if event.Version <= version {
			then = append(then, event)
		}
	}
	return then
}

// unchanged counts the workloads whose template has, by the last of some events, the stamp that it had at a moment.
func (f *fleet) unchanged(all, then timeline.Events, at timeline.Since) (count int) {
	stamps := func(events timeline.Events) map[string]string {
		last := map[string]string{}
		for _, event := range events {
			annotations, found, _ := unstructured.NestedStringMap(event.Object.Object, "spec", "template", "metadata", "annotations")
			if name := strings.ToLower(event.Object.GetKind()) + "/" + event.Object.GetName(); found {
				last[name] = annotations[checksum.StampKey(checksum.Source{Kind: checksum.ConfigMap, Name: "setting"})]
			}
		}
		return last
	}
	was, is := stamps(until(all, int64(at))), stamps(then)
	for _, name := range f.names {
		if is[name] == was[name] {
			count++
		}
	}
	return count
}
