package webhook

import (
	"context"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/configstamp/configstamp/checksum"
)

// checks notes who is asked, and for how long.
type checks struct {
	*cluster
	asked   int
	patient time.Duration
}

func (c *checks) Fresh(ctx context.Context, namespace string, must, beside []checksum.Source) (checksum.Contents, error) {
	c.asked++
	deadline, _ := ctx.Deadline()
	c.patient = time.Until(deadline)
	return c.cluster.Fresh(ctx, namespace, must, beside)
}

// TestPeopleAndWeHaveChecksOfOurOwn: what a person asks for is answered soon, and never
// waits for room that our re-admissions take, whoever says to be us.
func TestPeopleAndWeHaveChecksOfOurOwn(t *testing.T) {
	const us = "system:serviceaccount:configstamp:configstamp"
	for name, test := range map[string]struct {
		operation     admissionv1.Operation
		manager, user string
		own           bool
	}{
		"our roll":                      {admissionv1.Update, checksum.RollingManager, us, true},
		"our recording":                 {admissionv1.Update, checksum.RecordingManager, us, true},
		"a person's order":              {admissionv1.Update, checksum.RollingManager, "kubernetes-admin", false},
		"another's account":             {admissionv1.Update, checksum.RollingManager, "system:serviceaccount:shop:configstamp", false},
		"a creation":                    {admissionv1.Create, "kubectl", "kubernetes-admin", false},
		"a creation by our own account": {admissionv1.Create, "kubectl", us, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := &cluster{contents: contents(t, map[string]map[string]string{"configmap/a": {"key": "1"}})}
			people, own := &checks{cluster: c}, &checks{cluster: c}
			h := newHandler(c)
			h.OwnNamespace, h.People, h.Own, h.Patience = "configstamp", people, own, 250*time.Millisecond
			asked := testCase{Operation: test.operation, Stored: deployment("a"), FieldManager: test.manager}
			if test.operation == admissionv1.Create {
				asked.Stored = nil
			}
			request := asked.request(t, deployment("a"))
			request.UserInfo.Username = test.user
			admit(silent(t), t, h, request)
			if (own.asked > 0) != test.own || (people.asked > 0) == test.own {
				t.Fatalf("our checks are asked %d times, people's %d", own.asked, people.asked)
			}
			if test.own && own.patient < time.Second {
				t.Errorf("we have %s", own.patient)
			}
			if !test.own && people.patient > 250*time.Millisecond {
				t.Errorf("people wait %s", people.patient)
			}
		})
	}
}
