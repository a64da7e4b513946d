package workload_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/configstamp/configstamp/internal/workload"
)

func TestSame(t *testing.T) {
	const spec = `{"containers":[{"name":"web","image":"web:1"}]}`
	for about, c := range map[string]struct {
		a, b string // templates
		want bool
	}{
		"the same text":                                {`{"metadata":{"labels":{"a":"b"}},"spec":` + spec + `}`, `{"metadata":{"labels":{"a":"b"}},"spec":` + spec + `}`, true},
		"the order of keys and blanks":                 {`{"spec":{"a":1,"b":[1,2]},"metadata":{}}`, `{"metadata":{}, "spec": {"b":[1, 2],"a":1}}`, true},
		"the order of a list":                          {`{"spec":{"b":[1,2]}}`, `{"spec":{"b":[2,1]}}`, false},
		"another image":                                {`{"spec":` + spec + `}`, `{"spec":{"containers":[{"name":"web","image":"web:2"}]}}`, false},
		"a field of a newer API":                       {`{"spec":` + spec + `}`, `{"spec":{"containers":[{"name":"web","image":"web:1","newField":{"x":1}}]}}`, false},
		"a newer field beside containers":              {`{"spec":` + spec + `}`, `{"spec":{"newField":true,"containers":[{"name":"web","image":"web:1"}]}}`, false},
		"a newer field of metadata":                    {`{"metadata":{}}`, `{"metadata":{"newField":"x"}}`, false},
		"the other way round":                          {`{"metadata":{"newField":"x"}}`, `{"metadata":{}}`, false},
		"a label":                                      {`{"metadata":{"labels":{"a":"b"}}}`, `{"metadata":{"labels":{"a":"c"}}}`, false},
		"labels that go":                               {`{"metadata":{"labels":{"a":"b"}}}`, `{"metadata":{}}`, false},
		"metadata that goes":                           {`{"metadata":{"labels":{"a":"b"}},"spec":{}}`, `{"spec":{}}`, false},
		"an annotation, as rollout restart writes one": {`{"metadata":{"annotations":{"a":"b"}}}`, `{"metadata":{"annotations":{"a":"b","kubectl.kubernetes.io/restartedAt":"now"}}}`, false},
		"an annotation's value":                        {`{"metadata":{"annotations":{"a":"b"}}}`, `{"metadata":{"annotations":{"a":"c"}}}`, false},
		"an annotation renamed":                        {`{"metadata":{"annotations":{"a":""}}}`, `{"metadata":{"annotations":{"b":""}}}`, false},
		"an annotation that goes":                      {`{"metadata":{"annotations":{"a":""}}}`, `{"metadata":{"annotations":null}}`, false},
		"a stamp more":                                 {`{"metadata":{}}`, `{"metadata":{"annotations":{"configmap.configstamp.dev/a":"x"}}}`, true},
		"a stamp less":                                 {`{"metadata":{"annotations":{"a":"b","secret.configstamp.dev/a":"x"}}}`, `{"metadata":{"annotations":{"a":"b"}}}`, true},
		"a stamp's value":                              {`{"metadata":{"annotations":{"a":"b","secret.configstamp.dev/a":"x"}}}`, `{"metadata":{"annotations":{"secret.configstamp.dev/a":"y","a":"b"}}}`, true},
		"stamps beside another annotation":             {`{"metadata":{"annotations":{"secret.configstamp.dev/a":"x","a":"b"}}}`, `{"metadata":{"annotations":{"secret.configstamp.dev/b":"x","a":"c"}}}`, false},
		"as many stamps as annotations":                {`{"metadata":{"annotations":{"secret.configstamp.dev/a":"x"}}}`, `{"metadata":{"annotations":{"a":"x"}}}`, false},
		"the Helm idiom is not ours":                   {`{"metadata":{"annotations":{"checksum/config":"1"}}}`, `{"metadata":{"annotations":{"checksum/config":"2"}}}`, false},
		"pins of a later release":                      {`{"metadata":{}}`, `{"metadata":{"annotations":{"configstamp.dev/pins":"{}"}}}`, true},
		"other pins":                                   {`{"metadata":{"annotations":{"a":"b","configstamp.dev/pins":"{}"}}}`, `{"metadata":{"annotations":{"configstamp.dev/pins":"","a":"b"}}}`, true},
		"the mark of a pinned Pod":                     {`{"metadata":{"annotations":{"configstamp.dev/pinned":"{}"}}}`, `{"metadata":{}}`, true},
		"declined on the template is not ours":         {`{"metadata":{}}`, `{"metadata":{"annotations":{"configstamp.dev/declined":"{}"}}}`, false},
		"a baseline on the template is not ours":       {`{"metadata":{}}`, `{"metadata":{"annotations":{"configstamp.dev/baseline":"{}"}}}`, false},
		"annotations null, empty":                      {`{"metadata":{"annotations":null}}`, `{"metadata":{"annotations":{}}}`, true},
		"annotations empty, absent":                    {`{"metadata":{"annotations":{}}}`, `{"metadata":{}}`, true},
		"annotations absent, metadata null":            {`{"metadata":{}}`, `{"metadata":null}`, true},
		"metadata absent, annotations null":            {`{}`, `{"metadata":{"annotations":null}}`, true},
		"creationTimestamp null, absent":               {`{"metadata":{"creationTimestamp":null}}`, `{"metadata":{}}`, true},
		"labels empty, absent, metadata too":           {`{"metadata":{"labels":{}}}`, `{}`, true},
		"spec null, empty":                             {`{"spec":null}`, `{"spec":{}}`, true},
		"spec empty, absent":                           {`{"spec":{}}`, `{}`, true},
		"spec that goes":                               {`{"spec":` + spec + `}`, `{}`, false},
		"zero and absent are not the same":             {`{"spec":{"x":0}}`, `{"spec":{}}`, false},
		"false and absent are not the same":            {`{"metadata":{"x":false}}`, `{"metadata":{}}`, false},
		"a number and its text":                        {`{"spec":{"x":1}}`, `{"spec":{"x":"1"}}`, false},
		"large numbers":                                {`{"spec":{"x":9007199254740993}}`, `{"spec":{"x":9007199254740992}}`, false},
		"a number in another form":                     {`{"spec":{"x":1}}`, `{"spec":{"x":1.0}}`, false},
		"a name with escapes":                          {`{"spec":{"\u0061":1}}`, `{"spec":{"a":1}}`, true},
		"a name that comes twice":                      {`{"spec":{"a":1,"a":2}}`, `{"spec":{"a":2}}`, true},
		"metadata that comes twice":                    {`{"metadata":{"x":1},"metadata":{"y":1}}`, `{"metadata":{"y":1}}`, false},
		"a template that is null":                      {`{}`, `null`, true},
		"over several lines":                           {"{\n\t\"spec\": {\n\t\t\"x\": [1, {\"y\": null}]\n\t}\n}", `{"spec":{"x":[1,{"y":null}]}}`, true},
		"the case of a name":                           {`{"spec":{"x":1}}`, `{"spec":{"X":1}}`, false},
		"fields outside metadata and spec":             {`{"x":1}`, `{"x":2}`, true},
	} {
		t.Run(about, func(t *testing.T) {
			for _, name := range []string{"Deployment", "CronJob"} {
				kind := kindNamed(t, name)
				a := decode(t, kind, string(wrap(kind, `{"name":"a"}`, c.a))).Template
				b := decode(t, kind, string(wrap(kind, `{"name":"b","annotations":{"x":"y"}}`, c.b))).Template
				if a.Same(&b) != c.want || b.Same(&a) != c.want {
					t.Errorf("%s: Same() = %v, %v; want %v", name, a.Same(&b), b.Same(&a), c.want)
				}
				if !a.Same(&a) || !b.Same(&b) {
					t.Errorf("%s: a template differs from itself", name)
				}
			}
		})
	}
}

func TestUnprobed(t *testing.T) {
	const probed, bare = `{"name":"a","readinessProbe":{"httpGet":{"port":80}}}`, `{"name":"b","livenessProbe":{"httpGet":{"port":80}},"readinessProbe":null}`
	for spec, want := range map[string]bool{
		`{"containers":[` + bare + `]}`: true, `{"containers":[` + bare + `,` + bare + `]}`: true, `{"containers":[` + probed + `]}`: false, `{"containers":[` + bare + `,` + probed + `]}`: false,
		`{"initContainers":[` + probed + `],"containers":[` + bare + `]}`: false, // a sidecar
		`{"containers":[]}`: false, `{}`: false, `null`: false, `{"containers":7}`: false,
	} {
		for _, name := range []string{"Deployment", "CronJob"} {
			kind := kindNamed(t, name)
			template := decode(t, kind, string(wrap(kind, `{"name":"a"}`, `{"spec":`+spec+`}`))).Template
			if got := template.Unprobed(); got != want {
				t.Errorf("%s of %s: %t", name, spec, got)
			}
		}
	}
}

// managedBy is an entry of managedFields.
func managedBy(at, subresource, fields string) string {
	return fmt.Sprintf(`{"manager":"m","operation":"Update","apiVersion":"apps/v1","time":%s,"subresource":%q,"fieldsType":"FieldsV1","fieldsV1":%s}`, at, subresource, fields)
}

func TestTemplateWritten(t *testing.T) {
	entry := managedBy
	const (
		template = `{"f:spec":{"f:template":{"f:spec":{"f:containers":{}}}}}`
		replicas = `{"f:spec":{"f:replicas":{}}}`
		deeper   = `{"f:spec":{"f:jobTemplate":{"f:spec":{"f:template":{"f:spec":{}}}}}}`
		early    = `"2026-01-01T00:00:00Z"`
		late     = `"2026-06-01T00:00:00Z"`
	)
	first := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	second := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	for about, c := range map[string]struct {
		kind, entries string
		want          time.Time
	}{
		"nothing is known":                          {"Deployment", ``, time.Time{}},
		"one writer":                                {"Deployment", entry(early, "", template), first},
		"the newest of two writers":                 {"Deployment", entry(late, "", template) + "," + entry(early, "", template), second},
		"in any order":                              {"Deployment", entry(early, "", template) + "," + entry(late, "", template), second},
		"who writes only replicas does not count":   {"Deployment", entry(early, "", template) + "," + entry(late, "", replicas), first},
		"who writes only labels does not count":     {"Deployment", entry(late, "", `{"f:metadata":{"f:labels":{"f:template":{}}}}`), time.Time{}},
		"a subresource does not count":              {"Deployment", entry(late, "scale", template), time.Time{}},
		"an entry without a time does not count":    {"Deployment", entry("null", "", template), time.Time{}},
		"a CronJob's template is deeper":            {"CronJob", entry(late, "", deeper) + "," + entry(early, "", template), second},
		"a CronJob's schedule does not count":       {"CronJob", entry(late, "", `{"f:spec":{"f:jobTemplate":{"f:metadata":{}},"f:schedule":{}}}`), time.Time{}},
		"any field of a Pod is of its template":     {"Pod", entry(early, "", `{"f:metadata":{}}`), first},
		"fields that are no object are passed over": {"Deployment", entry(late, "", `{"f:spec":[]}`) + "," + entry(early, "", template), first},
		"fields that are absent are passed over":    {"Deployment", `{"time":` + late + `}`, time.Time{}},
	} {
		t.Run(about, func(t *testing.T) {
			raw := fmt.Sprintf(`{"metadata":{"name":"web","managedFields":[%s]}}`, c.entries)
			if got, _ := kindNamed(t, c.kind).TemplateWritten([]byte(raw)); !got.Equal(c.want) {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
	for _, raw := range []string{``, `null`, `[]`, `{"metadata":7}`, `{"metadata":{"managedFields":{}}}`, `{"metadata":{"managedFields":[{"time":"x"}]}}`} {
		if got, _ := kindNamed(t, "Deployment").TemplateWritten([]byte(raw)); !got.IsZero() {
			t.Errorf("%s: %v", raw, got)
		}
	}
}

func TestRolledByOwner(t *testing.T) {
	owners := func(owners string) string { return `{"name":"web","ownerReferences":[` + owners + `]}` }
	const (
		controller = `{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web-1","uid":"u","controller":true}`
		other      = `{"apiVersion":"v1","kind":"ConfigMap","name":"c","uid":"v","controller":false}`
		unsaid     = `{"apiVersion":"v1","kind":"ConfigMap","name":"c","uid":"w"}`
	)
	for about, c := range map[string]struct {
		owners     string
		controlled bool
	}{
		"no owner":                         {``, false},
		"an owner that does not control":   {other + "," + unsaid, false},
		"a controller":                     {controller, true},
		"a controller behind other owners": {other + "," + unsaid + "," + controller, true},
	} {
		t.Run(about, func(t *testing.T) {
			for _, kind := range workload.Builtin() {
				metadata := owners(c.owners)
				object := decode(t, kind, string(wrap(kind, metadata, `{"metadata":`+metadata+`}`)))
				if got, want := object.RolledByOwner(workload.Builtin()), c.controlled && kind.CreateOnly; got != want {
					t.Errorf("%s: %v, want %v", kind.Name, got, want)
				}
				if owner := object.Controller(); (owner != nil) != c.controlled || owner != nil && owner.UID != "u" {
					t.Errorf("%s: the controller is %v", kind.Name, owner)
				}
			}
		})
	}
}

func TestFullNameWhileTheNameIsNotMade(t *testing.T) {
	if got := decode(t, kindNamed(t, "Job"), `{"metadata":{"generateName":"web-","namespace":"shop"}}`).FullName(); got != "shop/web-*" {
		t.Errorf("got %s", got)
	}
}
