package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configstamp/configstamp/e2e/harness"
)

// Who owns which field decides what somebody's next apply takes away. Our token changes
// nothing of that, and with it no field in its own name either: what an empty patch
// changes, a webhook has added, and that nobody owns.
func TestStolenToken_LeavesWhoOwnsWhatAsItIs(t *testing.T) {
	t.Parallel()
	thief, admin, s := run.Stolen(t), run.Of(t).Client, run.Space(t)
	const owner = "?force=true&fieldManager=owner"
	for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet", "CronJob"} {
		t.Run(kind, func(t *testing.T) {
			s, name := s.In(t), strings.ToLower(kind)+"/web"
			path := "/apis/apps/v1/namespaces/" + s.Namespace + "/" + strings.ToLower(kind) + "s/web"
			version := "apps/v1"
			if kind == "CronJob" {
				path, version = strings.Replace(path, "apps", "batch", 1), "batch/v1"
			}
			s.Create(workload(kind, "web", ""))
			s.Patch(name, `{"metadata":{"labels":{"app":"web"}}}`)
			applied := fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":"web","labels":{"app":"web"}}}`, version, kind)
			harness.Must(t, request{verb: "PATCH", path: path + owner, contentType: asApply, body: applied}.send(t, admin))
			before := owners(s, name)
			for what, q := range map[string]request{
				"reset by one empty entry":     {contentType: asMerge, body: `{"metadata":{"managedFields":[{}]}}`},
				"reset by no entry":            {contentType: asMerge, body: `{"metadata":{"managedFields":[]}}`},
				"reset by a JSON patch":        {contentType: asJSONPatch, body: `[{"op":"replace","path":"/metadata/managedFields","value":[{}]}]`},
				"reset by a strategic patch":   {contentType: asStrategic, body: `{"metadata":{"managedFields":[{}]}}`},
				"an entry goes":                {contentType: asJSONPatch, body: `[{"op":"remove","path":"/metadata/managedFields/0"}]`},
				"an entry is another's":        {contentType: asJSONPatch, body: `[{"op":"replace","path":"/metadata/managedFields/0/manager","value":"thief"}]`},
				"an entry owns something else": {contentType: asJSONPatch, body: `[{"op":"replace","path":"/metadata/managedFields/0/fieldsV1","value":{"f:spec":{"f:suspend":{}}}}]`},
				"an owner applies nothing":     {contentType: asApply, path: owner, body: strings.Replace(applied, `,"labels":{"app":"web"}`, "", 1)},
				"the thief applies the same":   {contentType: asApply, path: strings.Replace(owner, "owner", "thief", 1), body: applied},
				"an annotation of ours":        {contentType: asMerge, body: `{"metadata":{"annotations":{"configstamp.dev/baseline":"{}"}}}`},
			} {
				t.Run(what, func(t *testing.T) {
					q.verb, q.path = "PATCH", path+q.path
					wantRefused(t, q.send(t, thief), "configstamp: blocked: metadata.managedFields: "+byPolicy)
				})
			}
			err := request{verb: "PATCH", path: path + "?fieldManager=configstamp", contentType: asMerge, body: "{}"}.send(t, thief)
			if diff := cmp.Diff(before, owners(s, name)); err != nil || diff != "" {
				t.Errorf("after an empty patch (%v) others own it:\n%s", err, diff)
			}
		})
	}
}

// owners are the managedFields of an object but those of its status, which its own
// controller writes when it likes.
func owners(s *harness.Space, object string) []metav1.ManagedFieldsEntry {
	return slices.DeleteFunc(s.Get(object).GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool { return entry.Subresource != "" })
}
