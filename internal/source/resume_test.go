package source

import (
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/configstamp/configstamp/checksum"
)

// A time to resume that was more than a minute ahead when it was written releases
// nothing for as long as it stands.
func TestATimeToResumeThatIsAhead(t *testing.T) {
	noon := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	const annotation = `{"f:metadata":{"f:annotations":{".":{},"f:configstamp.dev/resume":{}}}}`
	entry := func(after time.Duration, fields string) metav1.ManagedFieldsEntry {
		at := metav1.NewTime(noon.Add(after))
		return metav1.ManagedFieldsEntry{Time: &at, FieldsV1: metav1.NewFieldsV1(fields)}
	}
	// write is one version of a source; noon is the time when it comes.
	type write struct {
		resume  time.Duration // after noon
		entries []metav1.ManagedFieldsEntry
	}
	for about, c := range map[string]struct {
		writes []write
		ahead  bool // the last one is
	}{
		"the present time":                         {[]write{{0, []metav1.ManagedFieldsEntry{entry(0, annotation)}}}, false},
		"a minute ahead":                           {[]write{{time.Minute, []metav1.ManagedFieldsEntry{entry(0, annotation)}}}, false},
		"more than a minute ahead":                 {[]write{{time.Minute + time.Second, []metav1.ManagedFieldsEntry{entry(0, annotation)}}}, true},
		"a year ahead":                             {[]write{{365 * 24 * time.Hour, []metav1.ManagedFieldsEntry{entry(0, annotation)}}}, true},
		"past by now, and ahead when written":      {[]write{{-time.Hour, []metav1.ManagedFieldsEntry{entry(-2*time.Hour, annotation)}}}, true},
		"ahead, as the API server's clock is":      {[]write{{time.Hour, []metav1.ManagedFieldsEntry{entry(time.Hour, annotation)}}}, false},
		"another manager has written other things": {[]write{{-time.Hour, []metav1.ManagedFieldsEntry{entry(-2*time.Hour, annotation), entry(0, `{"f:metadata":{"f:labels":{"f:configstamp.dev/resume":{}}}}`)}}}, true},
		"another manager has written it too":       {[]write{{-time.Hour, []metav1.ManagedFieldsEntry{entry(0, annotation), entry(-2*time.Hour, annotation)}}}, true},
		"nobody knows when, now":                   {[]write{{0, nil}}, false},
		"nobody knows when, ahead":                 {[]write{{time.Hour, nil}}, true},
		"fields of another form":                   {[]write{{time.Hour, []metav1.ManagedFieldsEntry{entry(2*time.Hour, `{"f:metadata":["f:configstamp.dev/resume"]}`)}}}, true},
		"its manager has written other things":     {[]write{{-time.Hour, []metav1.ManagedFieldsEntry{entry(-2*time.Hour, annotation)}}, {-time.Hour, []metav1.ManagedFieldsEntry{entry(0, annotation)}}}, true},
		"it was corrected":                         {[]write{{-time.Hour, []metav1.ManagedFieldsEntry{entry(-2*time.Hour, annotation)}}, {0, []metav1.ManagedFieldsEntry{entry(0, annotation)}}}, false},
		"it was taken away, and written later": {[]write{{-time.Hour, []metav1.ManagedFieldsEntry{entry(-2*time.Hour, annotation)}}, {resume: noResume},
			{-time.Hour, []metav1.ManagedFieldsEntry{entry(0, annotation)}}}, false},
	} {
		t.Run(about, func(t *testing.T) {
			for _, relisted := range []bool{false, true} {
				clock := clocktesting.NewFakeClock(noon)
				condenser, s := &condenser{clock: clock}, newSink(checksum.ConfigMap, clock, func(string, checksum.Source, *checksum.Content) {})
				fill(s, "1")
				for i, write := range c.writes {
					cm := &corev1.ConfigMap{}
					cm.Namespace, cm.Name, cm.ResourceVersion, cm.ManagedFields = "shop", "web", strconv.Itoa(i+2), write.entries
					if write.resume != noResume {
						cm.Annotations = map[string]string{"configstamp.dev/resume": noon.Add(write.resume).Format(time.RFC3339)}
					}
					if o, _ := condenser.condense(cm); relisted {
						fill(s, cm.ResourceVersion, o)
					} else {
						_ = s.Update(o)
					}
				}
				record, _ := s.get("shop", "web")
				policy := record.Content.Policy
				if unread := len(policy.Findings(checksum.Source{})) > 0; unread != c.ahead || policy.Resumes().IsZero() != c.ahead {
					t.Errorf("relisted %t: it is unreadable: %t, and resumes %s; want unreadable %t", relisted, unread, policy.Resumes(), c.ahead)
				}
				if len(policy.Faults) > 0 {
					t.Errorf("it holds workloads: %v", policy.Faults)
				}
			}
		})
	}
}

// noResume is for a version without the annotation.
const noResume = -1
