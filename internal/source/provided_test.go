package source

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/cache/follow/fakeapi"
)

var vault = checksum.Source{Kind: checksum.SecretProviderClass, Name: "vault"}

// status is the JSON of a status as the driver writes it.
func status(version, pod, class, objectVersion string) string {
	return fmt.Sprintf(`{"kind":"SecretProviderClassPodStatus","apiVersion":"secrets-store.csi.x-k8s.io/v1","metadata":{"namespace":"shop","name":"%[2]s-shop-%[3]s","resourceVersion":%[1]q},`+
		`"status":{"podName":%[2]q,"secretProviderClassName":%[3]q,"mounted":true,"targetPath":"/x","objects":[{"id":"secret/db","version":%[4]q}]}}`, version, pod, class, objectVersion)
}

func reportOf(t testing.TB, text string) *report {
	t.Helper()
	whole := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(text), &whole.Object); err != nil {
		t.Fatal(err)
	}
	r, ok := (&condenser{}).report(whole)
	if !ok {
		t.Fatalf("%s is no status", text)
	}
	return r
}

func reported(pairs ...string) *checksum.Content {
	versions := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		versions[pairs[i]] = pairs[i+1]
	}
	return checksum.ContentOfVersions(versions)
}

func TestWhatAStatusReports(t *testing.T) {
	const head = `{"metadata":{"namespace":"shop","name":"web-1-shop-vault","resourceVersion":"7"}`
	for about, c := range map[string]struct {
		text    string
		class   string
		content *checksum.Content
	}{
		"as the driver writes it":          {status("7", "web-1", "vault", "1"), "vault", reported("secret/db", "1")},
		"several objects, in any order":    {head + `,"status":{"mounted":true,"secretProviderClassName":"vault","objects":[{"id":"b","version":"2"},{"version":"1","id":"a"}]}}`, "vault", reported("a", "1", "b", "2")},
		"nothing in it":                    {head + `,"status":{"mounted":true,"secretProviderClassName":"vault"}}`, "vault", reported()},
		"not mounted yet":                  {head + `,"status":{"secretProviderClassName":"vault","objects":[{"id":"a","version":"1"}]}}`, "", nil},
		"no status yet":                    {head + `}`, "", nil},
		"a status of another form":         {head + `,"status":[7]}`, "", nil},
		"versions of another form":         {head + `,"status":{"mounted":true,"secretProviderClassName":"vault","objects":[{"id":"a","version":{}}]}}`, "", nil},
		"fields that a newer driver knows": {head + `,"status":{"mounted":true,"secretProviderClassName":"vault","more":{"x":[]},"objects":[{"id":"a","version":"1","more":1}]}}`, "vault", reported("a", "1")},
	} {
		r := reportOf(t, c.text)
		if r.class != c.class || !r.content.Equal(c.content) || r.namespace != "shop" || r.name != "web-1-shop-vault" || r.resourceVersion != "7" {
			t.Errorf("%s: %v of class %q, %#v", about, r, r.class, r)
		}
		if same, ok := r.DeepCopyObject().(*report); !ok || same == r || same.class != r.class {
			t.Errorf("%s: copied as %v", about, same)
		}
		if strings.Contains(fmt.Sprintf("%v %+v %#v", r, r, r), fmt.Sprint(reported("a", "1").Entries[0].Sum[0], " ")) {
			t.Errorf("%s: it prints what it holds", about)
		}
	}
	if r, ok := (&condenser{}).report(&metav1.Status{}); ok {
		t.Errorf("a Status is read as %v", r)
	}
}

// Two pods of one class, and what comes of what they report.
func TestAClassHoldsWhatIsReportedLast(t *testing.T) {
	put := func(version, pod, objectVersion string) func(*testing.T, *reportSink) {
		return func(t *testing.T, s *reportSink) {
			_ = s.Update(reportOf(t, status(version, pod, "vault", objectVersion)))
		}
	}
	gone := func(version, pod string) func(*testing.T, *reportSink) {
		return func(t *testing.T, s *reportSink) { _ = s.Delete(reportOf(t, status(version, pod, "vault", "?"))) }
	}
	list := func(version string, statuses ...string) func(*testing.T, *reportSink) {
		return func(t *testing.T, s *reportSink) {
			var items []any
			for _, text := range statuses {
				items = append(items, reportOf(t, text))
			}
			_ = s.Replace(items, version)
		}
	}
	type steps []func(*testing.T, *reportSink)
	for about, c := range map[string]struct {
		steps steps
		want  string // version, "" for none
		told  int
	}{
		"nobody reports":                             {steps{}, "", 0},
		"the first report":                           {steps{put("101", "a", "1")}, "1", 1},
		"a second pod reports the same":              {steps{put("101", "a", "1"), put("102", "b", "1")}, "1", 1},
		"a pod reports the same again":               {steps{put("101", "a", "1"), put("102", "a", "1")}, "1", 1},
		"a second pod reports a new version":         {steps{put("101", "a", "1"), put("102", "b", "2")}, "2", 2},
		"the others follow":                          {steps{put("101", "a", "1"), put("102", "b", "1"), put("103", "a", "2"), put("104", "b", "2")}, "2", 2},
		"more digits are newer":                      {steps{put("999", "a", "1"), put("1000", "b", "2")}, "2", 2},
		"the one that reported last goes":            {steps{put("101", "a", "1"), put("102", "b", "2"), gone("103", "b")}, "2", 2},
		"the one that reported first goes":           {steps{put("101", "a", "1"), put("102", "b", "2"), gone("103", "a")}, "2", 2},
		"all go":                                     {steps{put("101", "a", "1"), put("102", "b", "1"), gone("103", "b"), gone("104", "a")}, "", 2},
		"one goes that was not there":                {steps{put("101", "a", "1"), gone("102", "b")}, "1", 1},
		"an older event":                             {steps{put("102", "a", "2"), put("101", "a", "1"), gone("101", "a")}, "2", 1},
		"listed, in the order of names":              {steps{list("110", status("105", "a", "vault", "2"), status("104", "b", "vault", "1"))}, "2", 1},
		"listed, the newest last":                    {steps{list("110", status("104", "a", "vault", "1"), status("105", "b", "vault", "2"))}, "2", 1},
		"listed again, without a change":             {steps{put("101", "a", "1"), list("110", status("101", "a", "vault", "1"))}, "1", 1},
		"listed again, with one that was not seen":   {steps{put("101", "a", "1"), list("110", status("101", "a", "vault", "1"), status("105", "b", "vault", "2"))}, "2", 2},
		"listed again, and nobody is left":           {steps{put("101", "a", "1"), list("110")}, "", 2},
		"events go on after a list":                  {steps{list("110", status("105", "a", "vault", "1")), put("109", "a", "0"), put("111", "a", "2")}, "2", 2},
		"versions go back, as after a restored etcd": {steps{put("201", "a", "2"), list("110", status("105", "a", "vault", "1")), put("111", "a", "2")}, "2", 3},
		"a status that reports of another class now": {steps{put("101", "a", "1"), func(t *testing.T, s *reportSink) {
			other := reportOf(t, status("102", "a", "other", "1"))
			other.name = "a-shop-vault"
			_ = s.Update(other)
		}}, "", 3},
		"what is no report": {steps{put("101", "a", "1"), func(_ *testing.T, s *reportSink) { _ = s.Update(&metav1.PartialObjectMetadata{}) }}, "1", 1},
		"another namespace's list": {steps{put("101", "a", "1"), func(_ *testing.T, s *reportSink) {
			_ = newReportSink(s.classes, "bank").Replace(nil, "110")
		}}, "1", 1},
	} {
		t.Run(about, func(t *testing.T) {
			told := 0
			s := newReportSink(newClasses(func(namespace string, source checksum.Source, _ *checksum.Content) {
				if told++; namespace != "shop" || source.Kind != checksum.SecretProviderClass {
					t.Errorf("told of %s in %s", source, namespace)
				}
			}), metav1.NamespaceAll)
			for _, step := range c.steps {
				step(t, s)
			}
			record, ok := s.classes.get("shop", "vault")
			var want *checksum.Content
			if c.want != "" {
				want = reported("secret/db", c.want)
			}
			if !record.Content.Equal(want) || ok != (want != nil) || told != c.told {
				t.Errorf("%v is held, told %d times; want version %q, %d times", record, told, c.want, c.told)
			}
			if listed := slices.Contains(s.classes.names("shop"), "vault"); listed != ok || (!ok && about != "a status that reports of another class now" && s.classes.len() != 0) {
				t.Errorf("listed %v among %d", listed, s.classes.len())
			}
		})
	}
}

// driver serves the statuses, once it is installed.
type driver struct {
	mu        sync.Mutex
	installed bool
	events    chan string // the next of the watch
}

func (d *driver) ServerResourcesForGroupVersionWithContext(_ context.Context, gv string) (*metav1.APIResourceList, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.installed || gv != statuses().GroupVersion().String() {
		return nil, apierrors.NewNotFound(schema.GroupResource{}, gv)
	}
	return &metav1.APIResourceList{APIResources: []metav1.APIResource{{Name: statuses().Resource, Kind: "SecretProviderClassPodStatus", Namespaced: true}}}, nil
}

func (d *driver) serve(w http.ResponseWriter, r *http.Request) bool {
	if !strings.HasPrefix(r.URL.Path, "/apis/secrets-store.csi.x-k8s.io/v1/") {
		return false
	}
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Query().Get("watch") == "" {
		_, _ = w.Write([]byte(`{"kind":"SecretProviderClassPodStatusList","apiVersion":"secrets-store.csi.x-k8s.io/v1","metadata":{"resourceVersion":"100"},"items":[` + status("90", "a", "vault", "1") + `]}`))
		return true
	}
	if r.URL.Query().Get("sendInitialEvents") != "" { // as a server without the feature
		w.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`))
		return true
	}
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush()
	for {
		select {
		case event := <-d.events:
			_ = json.NewEncoder(w).Encode(json.RawMessage(event))
			_ = http.NewResponseController(w).Flush()
		case <-r.Context().Done():
			return true
		}
	}
}

func TestStoreFollowsClassesWhileTheyAreServed(t *testing.T) {
	for _, installed := range []bool{false, true} {
		t.Run(fmt.Sprintf("installed: %t", installed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := fakeapi.Piped(t)
				d := &driver{installed: installed, events: make(chan string)}
				server.Intercept = d.serve
				store, err := NewStore(server.Config(), Options{Classes: d})
				if err != nil {
					t.Fatal(err)
				}
				told := &changes{}
				store.OnChange(told.add)
				run(t, store) // waits for ConfigMaps and Secrets alone
				held := func() *checksum.Content {
					view, err := NewChecker(store, CheckerOptions{}).Fresh(t.Context(), "shop", []checksum.Source{vault, web}, nil)
					if err != nil {
						t.Fatal(err)
					}
					return view[vault]
				}
				if !installed {
					if held() != nil || len(store.Names("shop", vault.Kind)) > 0 {
						t.Error("something is held of what is not served")
					}
					return
				}
				fakeapi.Eventually(t, "the class is held", func() bool { return held().Equal(reported("secret/db", "1")) })
				d.events <- `{"type":"MODIFIED","object":` + status("101", "a", "vault", "2") + `}`
				fakeapi.Eventually(t, "the new version is held", func() bool { return held().Equal(reported("secret/db", "2")) })
				if view, err := store.Cached("shop", []checksum.Source{vault}); err != nil || !view[vault].Equal(reported("secret/db", "2")) {
					t.Errorf("by memory: %v, %v", view, err)
				}
				if names := store.Names("shop", vault.Kind); !slices.Equal(names, []string{"vault"}) || store.Counts()[vault.Kind] != 1 {
					t.Errorf("names %v, counts %v", names, store.Counts())
				}
				if list := told.take(); !slices.Equal(list, []string{"shop/" + vault.String(), "shop/" + vault.String()}) {
					t.Errorf("told of %v", list)
				}
				d.events <- `{"type":"DELETED","object":` + status("102", "a", "vault", "2") + `}`
				fakeapi.Eventually(t, "nothing is held", func() bool { return held() == nil })
				for _, request := range server.Requests() {
					if strings.Contains(request, "secrets-store.csi.x-k8s.io") && strings.Contains(request, "/vault") {
						t.Errorf("unexpected request %s", request)
					}
				}
			})
		})
	}
}

func TestClassesAreForgottenWhenTheyAreServedNoMore(t *testing.T) {
	server := fakeapi.New(t)
	d := &driver{installed: true, events: make(chan string)}
	server.Intercept = d.serve
	store, err := NewStore(server.Config(), Options{Classes: d})
	if err != nil {
		t.Fatal(err)
	}
	stop := run(t, store)
	fakeapi.Eventually(t, "the class is held", func() bool { _, held := store.Get("shop", vault); return held })
	stop()
	if _, held := store.Get("shop", vault); held {
		t.Error("it is held without a watch")
	}
}
