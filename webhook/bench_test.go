package webhook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/configstamp/configstamp/checksum"
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
	handler.Dialects = []checksum.Dialect{checksum.Reloader, checksum.Wave}
	raw := written(b, object)
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
	c.Stored = written(b, stored)
	return handler, c.request(b, written(b, sent))
}

// written is an object as the API server writes it, fields in its order.
func written(b *testing.B, object map[string]any) []byte {
	b.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		b.Fatal(err)
	}
	var deployment appsv1.Deployment
	if err := json.Unmarshal(text, &deployment); err != nil {
		b.Fatal(err)
	}
	if text, err = json.Marshal(&deployment); err != nil {
		b.Fatal(err)
	}
	return text
}

// BenchmarkAdmit is a whole admission but TLS and TCP: the review is read,
// decided on, and answered.
func BenchmarkAdmit(b *testing.B) {
	template := func(object map[string]any) map[string]any {
		return object["spec"].(map[string]any)["template"].(map[string]any)["metadata"].(map[string]any)
	}
	for name, change := range map[string]func(stored, sent map[string]any){
		"CREATE":          nil,
		"UPDATE/replicas": func(_, sent map[string]any) { sent["spec"].(map[string]any)["replicas"] = 5 },
		"UPDATE/template": func(_, sent map[string]any) { template(sent)["labels"] = map[string]any{"app": "other"} },
		"UPDATE/image": func(_, sent map[string]any) {
			spec := sent["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
			spec["containers"].([]any)[0].(map[string]any)["image"] = "web:2"
		},
		"UPDATE/policy": func(stored, sent map[string]any) {
			for _, object := range []map[string]any{stored, sent} {
				object["metadata"].(map[string]any)["annotations"] = map[string]any{
					"configstamp.dev/ignore": "secret/other-*", "configstamp.dev/window": "Mon-Fri 22:00-04:00 Europe/Berlin",
					"configstamp.dev/min-interval": "5m", "configstamp.dev/pause": "false", "reloader.stakater.com/auto": "true",
				}
			}
			template(sent)["labels"] = map[string]any{"app": "other"}
		},
		"UPDATE/replace":   func(_, sent map[string]any) { delete(template(sent), "annotations") },
		"UPDATE/unchanged": func(_, _ map[string]any) {},
	} {
		b.Run(name, func(b *testing.B) {
			handler, request := benchmarked(b, change)
			ctx, body := silent(b), review(b, request)
			b.ReportAllocs()
			b.SetBytes(int64(len(body)))
			sent := bytes.NewReader(body)
			r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/mutate", sent)
			r.Header.Set("Content-Type", "application/json")
			w := &answered{header: http.Header{}}
			for b.Loop() {
				sent.Reset(body)
				w.status = http.StatusOK
				if handler.ServeHTTP(w, r); w.status != http.StatusOK || w.bytes == 0 {
					b.Fatal(w.status)
				}
			}
		})
	}
}

// answered takes an answer at no cost, so that only the handler is measured.
type answered struct {
	header        http.Header
	status, bytes int
}

func (a *answered) Header() http.Header    { return a.header }
func (a *answered) WriteHeader(status int) { a.status = status }
func (a *answered) Write(text []byte) (int, error) {
	a.bytes += len(text)
	return len(text), nil
}
