package revisions

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/configstamp/configstamp/internal/cache/follow/fakeapi"
	"github.com/configstamp/configstamp/internal/workload"
)

func kind(t *testing.T, resource string) *workload.Kind {
	t.Helper()
	for _, group := range []string{"apps", "batch", ""} {
		if found, ok := workload.Builtin().Find(group, resource); ok {
			return found
		}
	}
	t.Fatal(resource)
	return nil
}

// answering has a client ask a server that answers each LIST so.
func answering(t *testing.T, status int, body string) (*Client, *[]string) {
	t.Helper()
	var asked []string
	server := fakeapi.New(t)
	server.Intercept = func(w http.ResponseWriter, r *http.Request) bool {
		asked = append(asked, r.URL.RequestURI())
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprint(w, body)
		return true
	}
	client, err := New(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	return client, &asked
}

func TestOf(t *testing.T) {
	item := func(name, owner, template string) string {
		return fmt.Sprintf(`{"metadata":{"name":%q,"namespace":"shop","ownerReferences":[{"kind":"Deployment","uid":%q,"controller":true}]},%s}`, name, owner, template)
	}
	for resource, want := range map[string]struct{ path, item string }{
		"deployments":  {"replicasets", `"spec":{"template":{"spec":{"a":1}}}`},
		"statefulsets": {"controllerrevisions", `"data":{"spec":{"template":{"$patch":"replace","spec":{"a":1}}}}`},
		"daemonsets":   {"controllerrevisions", `"data":{"spec":{"template":{"spec":{"a":1}}}}`},
	} {
		t.Run(resource, func(t *testing.T) {
			client, asked := answering(t, http.StatusOK, `{"apiVersion":"apps/v1","kind":"AnyList","metadata":{"resourceVersion":"7"},"items":[`+
				item("one", "mine", want.item)+`,`+item("two", "other", want.item)+`,`+item("three", "mine", want.item)+`,{"metadata":{"name":"four"}}]}`)
			found, err := client.Of(t.Context(), kind(t, resource), "shop", "app=web", "mine")
			if err != nil || len(found) != 2 || found[0].Name != "one" || found[1].Name != "three" || string(found[1].Template.Spec) != `{"a":1}` {
				t.Errorf("found %+v, %v", found, err)
			}
			if left, err := client.Of(t.Context(), kind(t, resource), "shop", "app=web", ""); err != nil || len(left) != 1 || left[0].Name != "four" {
				t.Errorf("nobody controls %+v, %v", left, err)
			}
			if got := (*asked)[0]; got != "/apis/apps/v1/namespaces/shop/"+want.path+"?labelSelector=app%3Dweb" {
				t.Errorf("asked %s", got)
			}
		})
	}
}

func TestOf_AsksNothingOfOthers(t *testing.T) {
	client, asked := answering(t, http.StatusOK, `{}`)
	if found, err := client.Of(t.Context(), kind(t, "cronjobs"), "shop", "", "mine"); found != nil || err != nil {
		t.Errorf("%v, %v", found, err)
	}
	if len(*asked) > 0 {
		t.Errorf("asked %v", *asked)
	}
}

// Pods of a revision are found by the label that its kind gives them.
func TestHasPods(t *testing.T) {
	for label, of := range map[string]workload.Metadata{
		"pod-template-hash%3D5d4f":           {Name: "web-5d4f", Labels: map[string]string{"pod-template-hash": "5d4f"}},
		"controller-revision-hash%3D7c9b":    {Name: "agent-7c9b", Labels: map[string]string{"controller-revision-hash": "7c9b"}},   // a DaemonSet's
		"controller-revision-hash%3Ddb-6f8c": {Name: "db-6f8c", Labels: map[string]string{"controller.kubernetes.io/hash": "6f8c"}}, // a StatefulSet's
	} {
		for items, want := range map[string]bool{"": false, `{"metadata":{"name":"web-0","namespace":"shop"}}`: true} {
			client, asked := answering(t, http.StatusOK, `{"apiVersion":"v1","kind":"PodList","metadata":{"resourceVersion":"7"},"items":[`+items+`]}`)
			if has, err := client.HasPods(t.Context(), "shop", "app=web", &workload.Revision{Metadata: of}); err != nil || has != want {
				t.Errorf("%s: %v, %v", label, has, err)
			}
			if want := "/api/v1/namespaces/shop/pods?labelSelector=app%3Dweb%2C" + label + "&limit=1"; (*asked)[0] != want {
				t.Errorf("asked %s, want %s", (*asked)[0], want)
			}
		}
	}
}

// An object is found by its name alone, whatever its kind.
func TestStored(t *testing.T) {
	item := `{"metadata":{"name":"web","uid":"mine","labels":{"a":"b"}},"spec":{"template":{"metadata":{"annotations":{"configstamp.dev/pins":"{}"}},"spec":{}}}}`
	for resource, path := range map[string]string{"deployments": "/apis/apps/v1", "replicasets": "/apis/apps/v1", "cronjobs": "/apis/batch/v1", "replicationcontrollers": "/api/v1"} {
		client, asked := answering(t, http.StatusOK, `{"kind":"AnyList","items":[`+item+`]}`)
		found, err := client.Stored(t.Context(), kind(t, resource), "shop", "web")
		if err != nil || found == nil || found.UID != "mine" || found.Labels["a"] != "b" {
			t.Errorf("%s: %+v, %v", resource, found, err)
		}
		if want := path + "/namespaces/shop/" + resource + "?fieldSelector=metadata.name%3Dweb"; (*asked)[0] != want {
			t.Errorf("asked %s, want %s", (*asked)[0], want)
		}
	}
	client, _ := answering(t, http.StatusOK, `{"kind":"AnyList","items":[]}`)
	if found, err := client.Stored(t.Context(), kind(t, "deployments"), "shop", "web"); found != nil || err != nil {
		t.Errorf("none: %+v, %v", found, err)
	}
	for status, body := range map[int]string{
		http.StatusOK:        `{"kind":"AnyList","items":[` + item + `,` + item + `]}`,
		http.StatusForbidden: `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"the secret is swordfish"}`,
	} {
		client, _ := answering(t, status, body)
		if found, err := client.Stored(t.Context(), kind(t, "deployments"), "shop", "web"); found != nil || err == nil || strings.Contains(err.Error(), "swordfish") {
			t.Errorf("%d: %+v, %v", status, found, err)
		}
	}
}

func TestOf_FailsInPlainWords(t *testing.T) {
	client, _ := answering(t, http.StatusForbidden, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"the secret is swordfish"}`)
	_, err := client.Of(t.Context(), kind(t, "deployments"), "shop", "", "mine")
	if !apierrors.IsForbidden(err) || strings.Contains(err.Error(), "swordfish") {
		t.Errorf("error %v", err)
	}
}

func TestOf_WaitsForASlotNoLongerThanItMay(t *testing.T) {
	client, asked := answering(t, http.StatusOK, `{}`)
	for range parallel {
		client.slots <- struct{}{}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := client.Of(ctx, kind(t, "deployments"), "shop", "", "mine"); err == nil || len(*asked) > 0 {
		t.Errorf("error %v, asked %v", err, *asked)
	}
}
