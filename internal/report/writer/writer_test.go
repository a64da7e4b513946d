package writer

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/cache/follow/fakeapi"
	"github.com/configstamp/configstamp/internal/report"
	"github.com/configstamp/configstamp/internal/rollout"
)

func TestMain(m *testing.M) {
	utilruntime.ErrorHandlers = nil // one sleeps until the time outside the bubble of a test
	m.Run()
}

func TestPace_OneWriteASecondForEachObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		at := w.source("shop", "web")
		for i := range 100 { // ten seconds
			w.find(at, false, slices.Concat(slices.Repeat([]report.State{report.Done}, i), []report.State{report.Rolling})...)
			time.Sleep(100 * time.Millisecond)
		}
		synctest.Wait()
		writes := w.puts["shop/configmap-web"]
		if len(writes) < 9 || len(writes) > 11 {
			t.Errorf("%d writes in ten seconds", len(writes))
		}
		for i := range len(writes) - 1 {
			if between := writes[i+1].Sub(writes[i]); between < every {
				t.Errorf("two writes within %s", between)
			}
		}
		w.find(at, false, report.Done)
		w.want(at, report.Complete, "right after it turned")
	})
}

// An edit in 2,000 namespaces at once.
func TestPace_FiftyASecondInAllButATurnAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		turns := w.source("other", "web")
		w.find(turns, false, report.Rolling)
		time.Sleep(5 * time.Second)
		var many []rollout.SourceRef
		for i := range 2000 {
			at := w.source(fmt.Sprint("team-", i), "web")
			many = append(many, at)
			w.find(at, false, report.Rolling)
		}
		count := func() (n int) {
			for _, at := range many {
				n += w.written(at)
			}
			return n
		}
		for second := range 10 {
			if second == 3 {
				w.find(turns, false, report.Done)
				w.want(turns, report.Complete, "while others wait")
			}
			before := count()
			time.Sleep(time.Second)
			if n := count() - before; n < perSecond-1 || n > perSecond+1 {
				t.Errorf("%d writes in one second", n)
			}
		}
		time.Sleep(time.Duration(len(many)/perSecond) * time.Second)
		if n := count(); n < len(many) {
			t.Errorf("%d of %d namespaces have a report", n, len(many))
		}
	})
}

func TestWhenAReportIsMadeAndWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		at, foreign := w.source("shop", "web"), w.source("foreign", "web")
		w.find(at, false, report.Done, report.Done)
		w.find(foreign, false, report.Rolling)
		time.Sleep(time.Minute)
		w.want(at, "", "before anything has to roll")
		w.want(foreign, "", "where another installation serves")

		w.find(at, false, report.Done, report.Rolling)
		time.Sleep(time.Second)
		w.want(at, report.Rolling, "once something rolls")
		object := w.kept("shop", "configmap-web")
		if owners := object.OwnerReferences; len(owners) != 1 || owners[0].UID != "uid-web" || owners[0].Controller != nil || owners[0].BlockOwnerDeletion != nil {
			t.Errorf("owned by %+v", owners)
		}
		if is := &object.Status; !is.EditedAt.Time.Equal(edited) || is.Manager != "editor" {
			t.Errorf("edited at %s by %s", is.EditedAt, is.Manager)
		}

		// What says what is true is not written, whoever asks, leads, or writes something else on it.
		writes := w.written(at)
		for range 3 {
			w.writer.Changed(at)
			time.Sleep(2 * time.Second)
		}
		w.set("shop", "configmap-web", object) // such as another label
		time.Sleep(2 * compareEvery)
		w.lead()
		time.Sleep(2 * compareEvery)
		if n := w.written(at); n != writes {
			t.Errorf("unchanged, it was written %d times", n-writes)
		}

		// No report appears for a source that does not exist, and none is written that is about to be deleted.
		missing := rollout.SourceRef{Namespace: "shop", Source: checksum.Source{Kind: checksum.ConfigMap, Name: "missing"}}
		w.find(missing, false, report.Held)
		w.Delete("configmaps", "shop", "web")
		w.find(at, false, report.Held)
		time.Sleep(time.Minute)
		w.want(at, report.Rolling, "orphaned")
		w.want(missing, "", "without a source")
	})
}

// Facts may be older than the source: its watch is late.
func TestFactsOlderThanTheSourceAreNotWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		at := w.source("shop", "web")
		w.facts[at] = report.Facts{EditedAt: edited.Add(-time.Second), Workloads: []report.Workload{{Name: "deployment/a", State: report.Rolling}}}
		w.writer.Changed(at)
		time.Sleep(time.Minute)
		w.want(at, "", "with facts from before the edit")
		w.find(at, true, report.Rolling)
		time.Sleep(lastRetry)
		w.want(at, report.Rolling, "once the edit is known, by itself")
	})
}

func TestWhatIsNotTrueIsRepaired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		at := w.source("shop", "web")
		w.find(at, false, report.Held)
		time.Sleep(every)
		for what, harm := range map[string]func(){
			"forged":  func() { w.forge(at) },
			"deleted": func() { w.Delete(report.Resource, "shop", "configmap-web") },
			"restored by a backup": func() {
				old := w.kept("shop", "configmap-web")
				old.Status = report.Status{Edit: report.Edit{Total: 7}}
				w.Delete(report.Resource, "shop", "configmap-web")
				w.set("shop", "configmap-web", old)
			},
			"forged, and another process leads": func() {
				w.end()
				w.forge(at)
				w.lead()
			},
		} {
			harm()
			time.Sleep(2 * every)
			if w.want(at, report.Held, what); w.said(at) != "" && w.kept("shop", "configmap-web").Status.Total != 1 {
				t.Errorf("%s, it says %+v", what, w.kept("shop", "configmap-web").Status)
			}
		}

		w.find(at, true, report.Done) // nothing queued it
		applied := report.ConfigRollout{Spec: report.Spec{Source: report.Source{Kind: "ConfigMap", Name: "unused"}}}
		w.set("shop", "configmap-unused", &applied)
		long := w.source("shop", strings.Repeat("a", 250))
		w.find(long, true, report.Waiting)
		if w.want(at, report.Held, "before all are compared"); w.said(long) != "" {
			t.Error("a report that nothing queued is made at once")
		}
		time.Sleep(compareEvery)
		w.want(at, report.Complete, "after all were compared")
		w.want(long, report.Waiting, "after all were compared")
		w.want(rollout.SourceRef{Namespace: "shop", Source: checksum.Source{Kind: checksum.ConfigMap, Name: "unused"}}, report.Unused, "applied")
		w.forge(long)
		time.Sleep(2 * every)
		w.want(long, report.Waiting, "of a name that was cut, and forged")
	})
}

func TestRefusedInOneNamespace(t *testing.T) {
	quota := apierrors.NewForbidden(schema.GroupResource{Resource: report.Resource}, "", errors.New("exceeded quota: none"))
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: report.Kind}, "", nil)
	for name, refusal := range map[string]*apierrors.StatusError{"quota": quota, "definition of another release": invalid} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				tries := w.Refuse("(POST|PUT) .*/shop/", refusal)
				at, other := w.source("shop", "web"), w.source("other", "web")
				for minute := range 25 {
					w.find(at, false, slices.Repeat([]report.State{report.Rolling}, minute+1)...)
					w.find(other, false, slices.Repeat([]report.State{report.Rolling}, minute+1)...)
					time.Sleep(time.Minute)
				}
				synctest.Wait()
				if tries.Load() != 3 || w.warnings() != 1 {
					t.Errorf("in 25 minutes %d tries and %d warnings", tries.Load(), w.warnings())
				}
				if n := testutil.ToFloat64(w.writer.writes.WithLabelValues(refusedForGood)); n != 3 {
					t.Errorf("%v are counted", n)
				}
				if n := w.written(other); n != 25 {
					t.Errorf("in another namespace %d writes", n)
				}
				time.Sleep(time.Hour - 26*time.Minute)
				if n := w.warnings(); n != 1 {
					t.Errorf("in the first hour %d warnings", n)
				}
				time.Sleep(compareEvery + time.Minute)
				if n := w.warnings(); n != 2 {
					t.Errorf("after the hour %d warnings", n)
				}
				w.Refuse("(POST|PUT) .*/shop/", nil)
				time.Sleep(compareEvery + every)
				w.want(at, report.Rolling, "no longer refused")
			})
		})
	}
}

// What may be otherwise a moment later is tried again, without a rest or a warning.
func TestTriedAgainSoon(t *testing.T) {
	for _, refusal := range []*apierrors.StatusError{
		apierrors.NewConflict(schema.GroupResource{}, "", errors.New("it was changed")),
		apierrors.NewTooManyRequestsError("slow down"),
		apierrors.NewInternalError(errors.New("oh")),
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			at, tries := w.source("shop", "web"), w.Refuse("POST", refusal)
			w.find(at, false, report.Rolling)
			time.Sleep(time.Second)
			w.Refuse("POST", nil)
			time.Sleep(20 * time.Second)
			if w.want(at, report.Rolling, refusal.Error()); tries.Load() < 2 || w.warnings() != 0 {
				t.Errorf("%s: %d tries, %d warnings", refusal, tries.Load(), w.warnings())
			}
		})
	}
}

// A report ends with its namespace.
func TestANamespaceThatEndsIsNoRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ends := apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("it is being terminated"))
		ends.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
		at, tries := w.source("shop", "web"), w.Refuse("POST", ends)
		w.find(at, false, report.Rolling)
		time.Sleep(compareEvery / 2)
		if synctest.Wait(); tries.Load() != 1 || w.warnings() != 0 {
			t.Errorf("%d tries, %d warnings", tries.Load(), w.warnings())
		}
	})
}

func TestTheRightToListIsMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.define(false)
		time.Sleep(time.Minute)
		w.Refuse("/configrollouts", fakeapi.ErrForbidden)
		w.define(true)
		at := w.source("shop", "web")
		w.find(at, false, report.Rolling)
		time.Sleep(30 * time.Minute)
		if w.want(at, "", "while nothing may be listed"); w.warnings() != 1 {
			t.Errorf("%d warnings", w.warnings())
		}
		w.Refuse("/configrollouts", nil)
		time.Sleep(5 * time.Minute)
		w.want(at, report.Rolling, "with the right")
	})
}

func TestTheDefinitionComesAndGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.define(false)
		time.Sleep(time.Minute)
		at := w.source("shop", "web")
		w.find(at, false, report.Rolling)
		w.Requests()
		time.Sleep(2 * compareEvery)
		for _, request := range w.Requests() {
			if request != "GET /apis/configstamp.dev/v1alpha1" {
				t.Errorf("without a definition: %s", request)
			}
		}
		for range 2 {
			w.define(true)
			time.Sleep(20 * time.Second)
			w.want(at, report.Rolling, "with a definition")
			w.define(false)
			w.Delete(report.Resource, "shop", "configmap-web")
			time.Sleep(20 * time.Second)
		}
		if w.warnings() != 0 {
			t.Errorf("%d warnings", w.warnings())
		}
	})
}
