package e2e

import (
	"encoding/base64"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configstamp/configstamp/e2e/harness"
)

// Whoever may write the keys could have all that was recorded forgotten. Our token adds a
// key, and puts back what is damaged, as the product does. All are dry runs: the cluster
// has one Secret of keys.
func TestStolenToken_TakesNoKeyAway(t *testing.T) {
	t.Parallel()
	thief := run.Stolen(t)
	path := "/api/v1/namespaces/" + harness.OwnNamespace + "/secrets"
	const damaged, retired = "20200102T060000Z", "20200102T060001Z"
	own := run.Existing(t, harness.OwnNamespace)
	own.Patch("secret/"+keySecret, `{"data":{"`+damaged+`":"eA==","`+retired+`":""}}`)
	t.Cleanup(func() {
		own.Patch("secret/"+keySecret, `{"data":{"`+damaged+`":null,"`+retired+`":null}}`)
	})
	stored := own.Get("secret/" + keySecret)
	data, _, err := unstructured.NestedStringMap(stored.Object, "data")
	harness.Must(t, err)
	encoded := func(length int) string { return base64.StdEncoding.EncodeToString(make([]byte, length)) }
	var old string
	for name := range data {
		if name != damaged && name != retired {
			old = name
		}
	}
	const saying = "configstamp may add a key to the Secret of its keys, and nothing else of it"
	type fields = map[string]any
	for what, test := range map[string]struct {
		data    fields // nil takes an entry away
		set     fields // of the object
		refused string
	}{
		"a key is added":            {fields{"20200102T060002Z": encoded(32)}, nil, ""},
		"nothing is changed":        {nil, nil, ""},
		"a key goes":                {fields{old: nil}, nil, saying},
		"a key is another":          {fields{old: encoded(32)}, nil, saying},
		"a key is damaged":          {fields{old: encoded(31)}, nil, saying},
		"a key is retired":          {fields{old: ""}, nil, saying},
		"what is no key is added":   {fields{"20200102T060002Z": encoded(31)}, nil, saying},
		"a key of another name":     {fields{"another": encoded(32)}, nil, saying},
		"one is retired":            {fields{"20200102T060002Z": ""}, nil, saying},
		"one comes back":            {fields{retired: encoded(32)}, nil, saying},
		"what is damaged is mended": {fields{damaged: encoded(32)}, nil, ""},
		"what is damaged stays so":  {fields{damaged: encoded(31)}, nil, saying},
		"all keys go":               {nil, fields{"data": nil}, saying},
		"others add one as text":    {nil, fields{"stringData": fields{old: "another"}}, saying},
		"no key may be added":       {nil, fields{"immutable": true}, saying},
		"it goes with its owner":    {nil, fields{"ownerReferences": []any{fields{"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "0d8e5d5b-6a30-4f0c-8d5a-7d5a3b1f0c11"}}}, saying},
		"nobody can delete it":      {nil, fields{"finalizers": []any{"example.com/stuck"}}, saying},
		"a label":                   {nil, fields{"labels": fields{"stolen": "yes"}}, saying},
		"an annotation":             {nil, fields{"annotations": fields{"stolen": "yes"}}, saying},
	} {
		t.Run(what, func(t *testing.T) {
			object := stored.DeepCopy().Object
			for name, value := range test.data {
				put(t, object, value, "data", name)
			}
			for field, value := range test.set {
				at := []string{"metadata", field}
				if field == "data" || field == "stringData" || field == "immutable" {
					at = at[1:]
				}
				put(t, object, value, at...)
			}
			err := request{verb: "PUT", path: path + "/" + keySecret + "?dryRun=All", contentType: asObject, body: asJSON(t, object)}.send(t, thief)
			if test.refused == "" {
				harness.Must(t, err)
				return
			}
			wantRefused(t, err, test.refused)
		})
	}
}

func put(t *testing.T, object map[string]any, value any, at ...string) {
	t.Helper()
	if value == nil {
		unstructured.RemoveNestedField(object, at...)
		return
	}
	harness.Must(t, unstructured.SetNestedField(object, value, at...))
}
