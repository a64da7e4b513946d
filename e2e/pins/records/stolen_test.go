package records

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/configstamp/configstamp/e2e/harness"
)

// Our token fills nobody's namespace: it makes snapshots where a person has said so on the
// Namespace, by the label that opts in or the annotation that pins.
func TestStolenToken_MakesSnapshotsWhereSomebodyOptedIn(t *testing.T) {
	t.Parallel()
	const snapshot = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"web-message-3f2a91c07d5e8b4416aa","labels":{"configstamp.dev/snapshot":"true"},
		"annotations":{"configstamp.dev/of":"configmap/web-message","configstamp.dev/made":"2027-01-02T06:00:00Z"}},"immutable":true,"data":{"MESSAGE":"stolen"}}`
	thief := run.Stolen(t).CoreV1().RESTClient()
	create := func(s *harness.Space) error {
		return thief.Post().Namespace(s.Namespace).Resource("configmaps").Param("dryRun", "All").SetHeader("Content-Type", "application/json").Body([]byte(snapshot)).Do(t.Context()).Error()
	}
	plain, pins, opted := run.PlainSpace(t), run.PlainSpace(t), run.Space(t)
	for _, namespace := range []string{plain.Namespace, "default"} {
		err := create(run.Existing(t, namespace))
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "configstamp may create snapshots where the Namespace") {
			t.Errorf("in %s: %v, want it forbidden by the policy", namespace, err)
		}
	}
	harness.Must(t, create(opted))
	pins.SetPolicy("namespace", map[string]string{"pin": "true"})
	// The API server knows of it a moment later.
	pins.Eventually("waiting until a workload that opts in alone could be pinned", func() error { return create(pins) })
	opted.Label("disabled")
	opted.Eventually("waiting until none may be made where somebody opted out", func() error {
		if err := create(opted); !apierrors.IsForbidden(err) {
			return errors.New("one may be made still")
		}
		return nil
	})
}
