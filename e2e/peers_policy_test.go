package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configstamp/configstamp/e2e/harness"
)

func TestPeersRow06_BrokenWorkloadsAmongManyHoldNobodyElse(t *testing.T) {
	t.Parallel()
	s := run.Space(t)
	s.Set("configmap/c", "k", "1")
	names := []string{"deployment/denied", "deployment/unreadable"}
	s.Create(deployment("denied", "configmap/c"))
	s.Create(withPolicy(deployment("unreadable", "configmap/c"), settings{"window": "at night"}))
	want := rolls{}
	for i := range 10 {
		s.Create(deployment(fmt.Sprint("web-", i), "configmap/c"))
		want[fmt.Sprint("deployment/web-", i)] = 1
		names = append(names, fmt.Sprint("deployment/web-", i))
	}
	before := s.Settled(names...)
	var held harness.Counts
	t.Run("while the policy stands", func(t *testing.T) {
		s := s.In(t)
		run.DenyUpdates(t, s.Namespace, "denied", "nobody changes denied")
		s.Eventually("waiting until the policy denies", func() error {
			if result := s.TryKubectl("label", "deployment", "denied", "x=y", "--overwrite", "--dry-run=server"); result.Code == 0 {
				return fmt.Errorf("it does not")
			}
			return nil
		})
		s.Set("configmap/c", "k", "2")
		s.WantRolls(before, want)
		s.WantNote("deployment/denied", `configstamp keeps trying: ValidatingAdmissionPolicy "`+s.Namespace+`" refused: Invalid (422)`)
		s.WantNoNote("deployment/denied", "nobody changes denied") // it may quote what the template holds
		s.WantNote("deployment/unreadable", `PolicyUnreadable: configstamp.dev/window: "at night"`)
		held = s.Counts()
	})
	s.WantRolls(held, rolls{"deployment/denied": 1}) // it is tried for ever
	after := s.Counts()
	s.Patch("deployment/unreadable", `{"metadata":{"annotations":{"configstamp.dev/window":null}}}`)
	s.WantRolls(after, rolls{"deployment/unreadable": 1})
}

func TestPeersRow07_NeitherASuspendedCronJobNorACompletedJobRuns(t *testing.T) {
	t.Parallel()
	s := run.Space(t)
	s.Set("configmap/c", "k", "1")
	s.WaitServiceAccount()
	s.Create(workload("CronJob", "c", envFrom("configmap/c")))
	job := s.Create(workload("Job", "j", envFrom("configmap/c")))[0]
	jobs := run.Client.BatchV1().Jobs(s.Namespace)
	_, err := jobs.Patch(context.Background(), "j", types.MergePatchType, []byte(`{"spec":{"suspend":false}}`), metav1.PatchOptions{})
	harness.Must(t, err)
	s.Eventually("completing the Job, which its controller may have started by now", func() error {
		is, err := jobs.Get(context.Background(), "j", metav1.GetOptions{})
		if err != nil {
			return err
		}
		start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		if is.Status.StartTime != nil {
			start = is.Status.StartTime.UTC()
		}
		at := func(when time.Time) string { return when.Format(time.RFC3339) }
		complete := func(before string) error {
			done := fmt.Sprintf(`{"status":{"succeeded":1,"active":0,"ready":0,"startTime":%q,"completionTime":%q,"conditions":[`+before+
				`{"type":"Complete","status":"True","lastTransitionTime":%[2]q}]}}`, at(start), at(start.Add(time.Minute)))
			_, err := jobs.Patch(context.Background(), "j", types.MergePatchType, []byte(done), metav1.PatchOptions{}, "status")
			return err
		}
		err = complete(`{"type":"SuccessCriteriaMet","status":"True","lastTransitionTime":%[2]q},`)
		if apierrors.IsInvalid(err) { // 1.30 knows this condition only of Jobs with a success policy
			err = complete("")
		}
		return err
	})
	stamped := harness.Stamps(s.Get("job/j"))
	s.Set("configmap/c", "k", "2")
	s.Eventually("waiting until the CronJob carries the new content", func() error {
		if got, want := harness.Stamps(s.Get("cronjob/c"))[harness.StampKey("configmap/c")], s.Digest("configmap/c"); got != want {
			return fmt.Errorf("stamp %q, want %q", got, want)
		}
		return nil
	})
	s.Quiet()
	now := s.Get("job/j")
	if now.GetUID() != job.GetUID() || fmt.Sprint(harness.Stamps(now)) != fmt.Sprint(stamped) {
		t.Errorf("the Job was touched: %s", state(now))
	}
	if jobs := s.Kubectl("get", "jobs", "-o", "name").Stdout; jobs != "job.batch/j\n" {
		t.Errorf("Jobs: %q", jobs)
	}
}
