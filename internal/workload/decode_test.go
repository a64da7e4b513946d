package workload_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/workload"
)

// kindNamed is a row of the table; wrap puts a pod template where the kind has it.
func kindNamed(t *testing.T, name string) *workload.Kind {
	t.Helper()
	for _, kind := range workload.Builtin() {
		if kind.Name == name {
			return kind
		}
	}
	t.Fatalf("no kind %s", name)
	return nil
}

func wrap(kind *workload.Kind, metadata, template string) []byte {
	if len(kind.Template) == 0 { // a Pod is its template
		return []byte(template)
	}
	for i := len(kind.Template) - 1; i > 0; i-- {
		template = fmt.Sprintf(`{"other":[1],%q:%s}`, kind.Template[i], template)
	}
	return fmt.Appendf(nil, `{"kind":%q,"metadata":%s,%q:%s,"status":{"replicas":1}}`, kind.Name, metadata, kind.Template[0], template)
}

func decode(t *testing.T, kind *workload.Kind, raw string) *workload.Object {
	t.Helper()
	object, err := kind.Decode([]byte(raw))
	if err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	sameTyped(t, kind, []byte(raw))
	return object
}

func TestDecodeReadsEachBuiltinKind(t *testing.T) {
	const (
		metadata = `{"name":"web","namespace":"shop","uid":"u-1","resourceVersion":"7","generation":3,"labels":{"app":"web"},
			"annotations":{"configstamp.dev/baseline":"{\"secret/db-password\":\"v1:absent\"}"},"finalizers":["f"],"deletionTimestamp":"2026-01-02T03:04:05Z"}`
		template = `{"metadata":{"name":"web","namespace":"shop","labels":{"app":"web"},"annotations":{"a":"b","configmap.configstamp.dev/web-message":"x"}},
			"spec":{"newField":{"x":1},"containers":[{"name":"web","newField":1,"envFrom":[{"configMapRef":{"name":"web-message"}}]}],"imagePullSecrets":[{"name":"registry"}]}}`
	)
	for _, kind := range workload.Builtin() {
		t.Run(kind.Name, func(t *testing.T) {
			object := decode(t, kind, string(wrap(kind, metadata, template)))
			if object.Name != "web" || object.Namespace != "shop" || object.Labels["app"] != "web" || object.FullName() != "shop/web" || object.Kind != kind {
				t.Errorf("metadata is read as %+v", object.Metadata)
			}
			if diff := cmp.Diff(map[string]string{"a": "b", "configmap.configstamp.dev/web-message": "x"}, object.Template.Metadata.Annotations); diff != "" {
				t.Errorf("the template's annotations differ (-want +got):\n%s", diff)
			}
			if !object.Template.HasMetadata() {
				t.Error("the template's metadata is not seen")
			}
			want := checksum.Records{Stamps: map[string]string{"configmap.configstamp.dev/web-message": "x"}}
			if len(kind.Template) > 0 {
				want.Baseline = map[checksum.Source]string{{Kind: checksum.Secret, Name: "db-password"}: checksum.Absent}
				if object.UID != "u-1" || object.ResourceVersion != "7" || object.Generation != 3 || object.DeletionTimestamp == nil {
					t.Errorf("metadata is read as %+v", object.Metadata)
				}
			}
			if records, err := object.Records(); err != nil || !records.Equal(want) {
				t.Errorf("on record: %v, %v; want %v", records, err, want)
			}
			references, err := object.References()
			if err != nil || len(references) != 2 || references[0].Source.Name != "web-message" || references[1].Source.Name != "registry" {
				t.Errorf("references: %v, %v", references, err)
			}
		})
	}
}

func TestDecodeToleratesWhatIsMissing(t *testing.T) {
	deployment, cronJob, pod := kindNamed(t, "Deployment"), kindNamed(t, "CronJob"), kindNamed(t, "Pod")
	for about, c := range map[string]struct {
		kind        *workload.Kind
		raw         string
		hasMetadata bool
	}{
		"an empty object":                   {deployment, `{}`, false},
		"null":                              {deployment, `null`, false},
		"null metadata":                     {deployment, `{"metadata":null,"spec":{"template":{"metadata":{},"spec":{}}}}`, true},
		"null annotations":                  {deployment, `{"metadata":{"annotations":null},"spec":{"template":{"metadata":{"annotations":null},"spec":{}}}}`, true},
		"null template metadata":            {deployment, `{"spec":{"template":{"metadata":null}}}`, false},
		"null template":                     {deployment, `{"spec":{"template":null}}`, false},
		"null spec":                         {deployment, `{"spec":null}`, false},
		"null template spec":                {deployment, `{"spec":{"template":{"spec":null}}}`, false},
		"null in the middle of the path":    {cronJob, `{"spec":{"jobTemplate":null}}`, false},
		"a CronJob's template is deeper":    {cronJob, `{"spec":{"template":{"metadata":{"annotations":{"a":"b"}}}}}`, false},
		"field names count with their case": {deployment, `{"Metadata":{"name":"x"},"spec":{"Template":{"metadata":{"annotations":{"a":"b"}}},"template":{"Metadata":{"annotations":{"a":"b"}},"Spec":{"containers":[{"envFrom":[{"configMapRef":{"name":"x"}}]}]}}}}`, false},
		"in metadata too":                   {deployment, `{"metadata":{"Name":"x","Annotations":{"a":"b"}},"spec":{"template":{"metadata":{"Annotations":{"a":"b"}},"spec":{"Containers":[{"envFrom":[{"configMapRef":{"name":"x"}}]}],"containers":[{"EnvFrom":[{"configMapRef":{"name":"x"}}]}]}}}}`, true},
		"a Pod without annotations":         {pod, `{"metadata":{"name":""},"spec":{"containers":[]}}`, true},
		"a Pod with nothing":                {pod, `{"metadata":{},"spec":null}`, true},
		"unknown fields of any form":        {deployment, `{"x":[{}],"metadata":{"y":1e400,"z":{"annotations":{"a":"b"}}},"spec":{"replicas":"many","template":{"metadata":{"labels":7},"w":null}}}`, true},
	} {
		t.Run(about, func(t *testing.T) {
			object := decode(t, c.kind, c.raw)
			if object.Name != "" || len(object.Template.Metadata.Annotations) != 0 || len(object.Annotations) != 0 {
				t.Errorf("read as %+v", object)
			}
			if object.Template.HasMetadata() != c.hasMetadata {
				t.Errorf("HasMetadata() = %v", !c.hasMetadata)
			}
			if references, err := object.References(); err != nil || len(references) != 0 {
				t.Errorf("references: %v, %v", references, err)
			}
			if records, err := object.Records(); err != nil || !records.Equal(checksum.Records{}) {
				t.Errorf("on record: %v, %v", records, err)
			}
		})
	}
}

// Each source of a projected volume has the keys that its mounts name, so that a
// template of 100 KB can select millions.
func TestATemplateThatSelectsTooManyKeysIsNotRead(t *testing.T) {
	projected := func(sources, mounts int) string {
		var volume, web []string
		for i := range sources {
			volume = append(volume, fmt.Sprintf(`{"configMap":{"name":"web-%d"}}`, i))
		}
		for i := range mounts {
			web = append(web, fmt.Sprintf(`{"name":"files","mountPath":"/%d","subPath":"key-%d"}`, i, i))
		}
		return fmt.Sprintf(`{"metadata":{"name":"web","namespace":"shop"},"spec":{"template":{"spec":{"containers":[{"name":"web","volumeMounts":[%s]}],"volumes":[{"name":"files","projected":{"sources":[%s]}}]}}}}`,
			strings.Join(web, ","), strings.Join(volume, ","))
	}
	deployment := kindNamed(t, "Deployment")
	if references, err := decode(t, deployment, projected(1000, 100)).References(); err != nil || len(references) != 1000 {
		t.Errorf("%d references, %v", len(references), err)
	}
	_, err := decode(t, deployment, projected(1000, 101)).References()
	if err == nil || !strings.Contains(err.Error(), "Deployment shop/web") || !strings.Contains(err.Error(), "no more than 100000") || strings.Contains(err.Error(), "key-") {
		t.Errorf("%v", err)
	}
}

// A pod template may hold a secret in plain text, and what is wrong with it is
// logged and shown as a warning.
func TestErrorsNeverQuoteTheObject(t *testing.T) {
	const secret = "hunter2"
	template := func(metadata, spec string) string {
		return `{"spec":{"template":{"metadata":` + metadata + `,"spec":` + spec + `}}}`
	}
	plainEnv := `{"containers":[{"name":"web","env":[{"name":"PASSWORD","value":"hunter2"%s}]}]%s}`
	for about, raw := range map[string]string{
		"nothing":                    ``,
		"no JSON":                    `hunter2`,
		"broken off":                 `{"metadata":{"annotations":{"x":"hunter2`,
		"broken after a secret":      template(`{}`, fmt.Sprintf(plainEnv, `}`, ``)),
		"a bad escape":               `{"metadata":{"name":"hunter2\q"}}`,
		"more after the end":         `{"metadata":{"name":"x"}} hunter2`,
		"a list":                     `["hunter2"]`,
		"a text":                     `"hunter2"`,
		"a text for metadata":        `{"metadata":"hunter2"}`,
		"a text for labels":          `{"metadata":{"labels":"hunter2"}}`,
		"a text for a number":        `{"metadata":{"generation":"hunter2"}}`,
		"a text for a time":          `{"metadata":{"deletionTimestamp":"hunter2"}}`,
		"a list for an annotation":   `{"metadata":{"annotations":{"hunter2":["hunter2"]}}}`,
		"a text for the template":    `{"spec":{"template":"hunter2"}}`,
		"text in the middle":         `{"spec":"hunter2"}`,
		"text for its metadata":      template(`"hunter2"`, `{}`),
		"text for its annotations":   template(`{"annotations":"hunter2"}`, `{}`),
		"number for an annotation":   template(`{"annotations":{"hunter2":7}}`, `{}`),
		"text for its spec":          template(`{}`, `"hunter2"`),
		"text for containers":        template(`{}`, `{"containers":"hunter2"}`),
		"text for a container":       template(`{}`, `{"containers":["hunter2"]}`),
		"map for an env value":       template(`{}`, `{"containers":[{"env":[{"name":"P","value":{"hunter2":"hunter2"},"valueFrom":{}}]}]}`),
		"number for an env value":    template(`{}`, `{"containers":[{"env":[{"name":"P","value":4711,"valueFrom":{}}]}]}`),
		"a quantity that is none":    template(`{}`, `{"volumes":[{"name":"v","emptyDir":{"sizeLimit":"hunter2"}}]}`),
		"a number that is too large": template(`{}`, `{"volumes":[{"name":"v","iscsi":{"lun":47110000000000}}]}`),
		"a secret beside a mistake":  template(`{}`, fmt.Sprintf(plainEnv, ``, `,"volumes":[{"name":7}]`)),
	} {
		t.Run(about, func(t *testing.T) {
			object, err := kindNamed(t, "Deployment").Decode([]byte(raw))
			if err == nil {
				_, err = object.References()
			}
			if err == nil {
				t.Fatal("no error")
			}
			if text := err.Error(); strings.Contains(text, secret) || strings.Contains(text, "4711") {
				t.Errorf("the error quotes the object: %s", text)
			}
			if !strings.Contains(err.Error(), "Deployment") {
				t.Errorf("the error does not say what was read: %v", err)
			}
		})
	}
}
