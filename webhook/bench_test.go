package webhook

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
)

// benchmarked is a Deployment of 20 KB that references ten sources, stamped or
// not, and a handler that holds them.
func benchmarked(b *testing.B, change func(stored, object map[string]any)) (*Handler, *admissionv1.AdmissionRequest) {
	b.Helper()
	sources := map[string]map[string]string{}
	var env, envFrom []any
	for i := range 10 {
		name := fmt.Sprintf("source-%d", i)
		data := map[string]string{}
		for k := range 10 {
			data[fmt.Sprintf("key-%d", k)] = strings.Repeat("value", k)
		}
		if i%2 == 0 {
			sources["configmap/"+name] = data
			envFrom = append(envFrom, map[string]any{"configMapRef": map[string]any{"name": name}})
			continue
		}
		sources["secret/"+name] = data
		env = append(env, map[string]any{"name": fmt.Sprintf("SECRET_%d", i), "valueFrom": map[string]any{"secretKeyRef": map[string]any{"name": name, "key": "key-1"}}})
	}
	for i := range 150 {
		env = append(env, map[string]any{"name": fmt.Sprintf("VARIABLE_%d", i), "value": strings.Repeat("v", 60)})
	}
	object := map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{
			"name": "web-app", "namespace": caseNamespace, "uid": "u1",
			"annotations":   map[string]any{"example.com/team": "blue"},
			"managedFields": []any{map[string]any{"manager": "kubectl", "fieldsV1": map[string]any{"f:spec": strings.Repeat("f", 5000)}}},
		},
		"spec": map[string]any{"replicas": 2, "template": map[string]any{
			"metadata": map[string]any{"labels": map[string]any{"app": "web"}},
			"spec":     map[string]any{"containers": []any{map[string]any{"name": "web", "image": "web:1", "env": env, "envFrom": envFrom}}},
		}},
	}
	handler := newHandler(&cluster{contents: contents(b, sources)})
	raw, err := json.Marshal(object)
	if err != nil {
		b.Fatal(err)
	}
	c := testCase{Operation: admissionv1.Create}
	request := c.request(b, raw)
	if change == nil {
		return handler, request
	}
	result := apply(b, raw, admit(silent(b), b, handler, request).Patch)
	var stored, sent map[string]any
	for _, into := range []*map[string]any{&stored, &sent} {
		if err := json.Unmarshal(result, into); err != nil {
			b.Fatal(err)
		}
	}
	change(stored, sent)
	c = testCase{Operation: admissionv1.Update}
	if c.Stored, err = json.Marshal(stored); err != nil {
		b.Fatal(err)
	}
	if raw, err = json.Marshal(sent); err != nil {
		b.Fatal(err)
	}
	return handler, c.request(b, raw)
}

// BenchmarkAdmit is a whole admission but TLS and TCP: the review is read,
// decided on, and answered.
func BenchmarkAdmit(b *testing.B) {
	template := func(object map[string]any) map[string]any {
		return object["spec"].(map[string]any)["template"].(map[string]any)["metadata"].(map[string]any)
	}
	for name, change := range map[string]func(stored, sent map[string]any){
		"CREATE":           nil,
		"UPDATE/replicas":  func(_, sent map[string]any) { sent["spec"].(map[string]any)["replicas"] = 5 },
		"UPDATE/template":  func(_, sent map[string]any) { template(sent)["labels"] = map[string]any{"app": "other"} },
		"UPDATE/replace":   func(_, sent map[string]any) { delete(template(sent), "annotations") },
		"UPDATE/unchanged": func(_, _ map[string]any) {},
	} {
		b.Run(name, func(b *testing.B) {
			handler, request := benchmarked(b, change)
			ctx, body := silent(b), review(b, request)
			b.ReportAllocs()
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				if w := post(ctx, handler, body); w.Code != http.StatusOK {
					b.Fatal(w.Body)
				}
			}
		})
	}
}
