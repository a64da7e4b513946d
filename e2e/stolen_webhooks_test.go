package e2e

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/configstamp/configstamp/e2e/harness"
)

// Its own webhook configurations get the authority to be trusted, when that is
// self-managed, and nothing else.
func TestStolenToken_PointsTheWebhooksNowhereElse(t *testing.T) {
	for kind, more := range map[string]map[string]string{
		"MutatingWebhookConfiguration":   {"when it is asked": `"reinvocationPolicy":"Never"`},
		"ValidatingWebhookConfiguration": {},
	} {
		t.Run(kind, func(t *testing.T) {
			resource := strings.ToLower(kind) + "s"
			path := "/apis/admissionregistration.k8s.io/v1/" + resource + "/configstamp"
			before := configuration(t, resource)
			restored(t, resource, before)
			entry := entries(t, before)[0]
			refusesOtherFields(t, path, kind, entry, more)
			refusesOtherEntries(t, path, len(entries(t, before)))
			takesAnAuthority(t, path, resource, entry)
		})
	}
}

const sayingCABundle = "may change the caBundle of its webhooks, and nothing else of them"

// with is a patch of one entry.
func with(entry map[string]any, fields string) string {
	return fmt.Sprintf(`{"webhooks":[{"name":%q,%s}]}`, entry["name"], fields)
}

func refusesOtherFields(t *testing.T, path, kind string, entry map[string]any, more map[string]string) {
	thief := run.Stolen(t)
	heeded(t, thief, request{verb: "PATCH", path: path, contentType: asMerge, body: `{"metadata":{"labels":{"stolen":"yes"}}}`})
	all := map[string]string{
		"the address":          `"clientConfig":{"url":"https://thief.example/"}`,
		"a Service":            `"clientConfig":{"$retainKeys":["service","caBundle"],"service":{"namespace":"thief","name":"thief"}}`,
		"more rules":           `"rules":[{"apiGroups":["*"],"apiVersions":["*"],"resources":["*/*"],"operations":["*"]}]`,
		"other namespaces":     `"namespaceSelector":{"matchLabels":{"other":"yes"}}`,
		"other objects":        `"objectSelector":{"matchLabels":{"other":"yes"}}`,
		"no objects":           `"matchConditions":[{"name":"none","expression":"false"}]`,
		"what if it is away":   `"failurePolicy":"Fail"`,
		"how long it may take": `"timeoutSeconds":30`,
	}
	maps.Copy(all, more)
	for what, fields := range all {
		t.Run(what, func(t *testing.T) {
			wantRefused(t, request{verb: "PATCH", path: path, contentType: asStrategic, body: with(entry, fields)}.send(t, thief), sayingCABundle)
		})
	}
	t.Run("by an apply", func(t *testing.T) {
		apply := fmt.Sprintf(`{"apiVersion":"admissionregistration.k8s.io/v1","kind":%q,"metadata":{"name":"configstamp"},`, kind) + strings.TrimPrefix(with(entry, `"failurePolicy":"Fail"`), "{")
		wantRefused(t, request{verb: "PATCH", path: path + "?fieldManager=thief&force=true", contentType: asApply, body: apply}.send(t, thief), sayingCABundle)
	})
}

func refusesOtherEntries(t *testing.T, path string, entries int) {
	thief := run.Stolen(t)
	more := fmt.Sprintf(`[{"op":"copy","from":"/webhooks/0","path":"/webhooks/-"},{"op":"replace","path":"/webhooks/%d/name","value":"thief.example.com"}]`, entries)
	for what, q := range map[string]request{
		"by a JSON patch": {contentType: asJSONPatch, body: `[{"op":"add","path":"/webhooks/0/clientConfig/url","value":"https://thief.example/"}]`},
		"no webhooks":     {contentType: asMerge, body: `{"webhooks":[]}`},
		"one less":        {contentType: asJSONPatch, body: `[{"op":"remove","path":"/webhooks/0"}]`},
		"one more":        {contentType: asJSONPatch, body: more},
		"a label":         {contentType: asMerge, body: `{"metadata":{"labels":{"stolen":"yes"}}}`},
		"an annotation":   {contentType: asMerge, body: `{"metadata":{"annotations":{"stolen":"yes"}}}`},
	} {
		t.Run(what, func(t *testing.T) {
			q.verb, q.path = "PATCH", path
			wantRefused(t, q.send(t, thief), sayingCABundle)
		})
	}
}

// takesAnAuthority is what the token may do: write an authority beside the one that is
// trusted already.
func takesAnAuthority(t *testing.T, path, resource string, entry map[string]any) {
	thief := run.Stolen(t)
	other, err := harness.NewAuthority()
	harness.Must(t, err)
	was, err := base64.StdEncoding.DecodeString(caBundle(entry))
	harness.Must(t, err)
	bundle := base64.StdEncoding.EncodeToString(slices.Concat(was, other.PEM))
	harness.Must(t, request{verb: "PATCH", path: path, contentType: asMerge, body: "{}"}.send(t, thief))
	harness.Must(t, request{verb: "PATCH", path: path, contentType: asStrategic, body: with(entry, fmt.Sprintf(`"clientConfig":{"caBundle":%q}`, bundle))}.send(t, thief))
	after := entries(t, configuration(t, resource))[0]
	if caBundle(after) != bundle {
		t.Error("the caBundle was not written")
	}
	harness.Must(t, unstructured.SetNestedField(after, caBundle(entry), "clientConfig", "caBundle"))
	if asJSON(t, after) != asJSON(t, entry) {
		t.Error("more than the caBundle was changed")
	}
}

func caBundle(entry map[string]any) string {
	bundle, _, _ := unstructured.NestedString(entry, "clientConfig", "caBundle")
	return bundle
}

func entries(t *testing.T, configuration *unstructured.Unstructured) (found []map[string]any) {
	t.Helper()
	all, _, err := unstructured.NestedSlice(configuration.Object, "webhooks")
	harness.Must(t, err)
	for _, one := range all {
		found = append(found, one.(map[string]any))
	}
	return found
}

func ofAdmission(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: resource}
}

// configuration is one of our two webhook configurations.
func configuration(t *testing.T, resource string) *unstructured.Unstructured {
	t.Helper()
	found, err := run.Dynamic.Resource(ofAdmission(resource)).Get(t.Context(), "configstamp", metav1.GetOptions{})
	harness.Must(t, err)
	return found
}

// restored puts the entries of a configuration back at the end of the test.
func restored(t *testing.T, resource string, before *unstructured.Unstructured) {
	t.Cleanup(func() {
		all := run.Dynamic.Resource(ofAdmission(resource))
		now, err := all.Get(context.Background(), "configstamp", metav1.GetOptions{})
		harness.Must(t, err)
		now.Object["webhooks"] = before.Object["webhooks"]
		_, err = all.Update(context.Background(), now, metav1.UpdateOptions{})
		harness.Must(t, err)
	})
}
