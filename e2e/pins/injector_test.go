package pins

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/configstamp/configstamp/e2e/harness"
	"github.com/configstamp/configstamp/e2e/pins/process"
)

// sidecar is a container that an injector adds. It reads what the app reads, and a ConfigMap
// of its own; "late" also names a key that came to the source later.
func sidecar(name string, port int, late bool) corev1.Container {
	reference := func(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }
	container := corev1.Container{
		Name: name, Image: image, ImagePullPolicy: corev1.PullNever, Args: []string{"lenient", fmt.Sprint(port)},
		EnvFrom: []corev1.EnvFromSource{
			{Prefix: "FROM_", ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: reference("settings")}},
			{Prefix: "OWN_", ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: reference("sidecar")}},
		},
	}
	if late {
		container.Env = []corev1.EnvVar{{Name: "LATE", ValueFrom: &corev1.EnvVarSource{
			ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: reference("settings"), Key: "LATE"},
		}}}
	}
	return container
}

// inject serves a mutating webhook that adds containers to Pods with the label inject=yes.
// The API server asks webhooks by the names of their configurations.
func inject(t *testing.T, name string, container *corev1.Container) {
	t.Helper()
	handler := http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		var review admissionv1.AdmissionReview
		body, err := io.ReadAll(request.Body)
		if err == nil {
			err = json.Unmarshal(body, &review)
		}
		var pod corev1.Pod
		if err == nil {
			err = json.Unmarshal(review.Request.Object.Raw, &pod)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
		was := func(other corev1.Container) bool { return other.Name == container.Name }
		if !slices.ContainsFunc(pod.Spec.Containers, was) { // reinvoked, it is there
			patch, _ := json.Marshal([]map[string]any{{"op": "add", "path": "/spec/containers/-", "value": container}})
			kind := admissionv1.PatchTypeJSONPatch
			review.Response.Patch, review.Response.PatchType = patch, &kind
		}
		_ = json.NewEncoder(w).Encode(review)
	})
	server := httptest.NewUnstartedServer(handler)
	listener, err := net.Listen("tcp", net.JoinHostPort(run.HostAddress(), "0"))
	harness.Must(t, err)
	_ = server.Listener.Close()
	server.Listener = listener
	run.Authority.Serve(t, server)
	run.Install(t, fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: %[1]s}
webhooks:
- name: %[1]s.example.com
  clientConfig: {url: 'https://%[2]s/', caBundle: %[3]s}
  rules: [{apiGroups: [""], apiVersions: [v1], resources: [pods], operations: [CREATE]}]
  objectSelector: {matchLabels: {inject: 'yes'}}
  failurePolicy: Fail
  sideEffects: None
  admissionReviewVersions: [v1]
`, name+"-injector", listener.Addr(), run.Authority.Base64()))
}

// An injector that is not ours adds a sidecar before, or after us: its references to what the
// app reads are pinned as well, those to its own ConfigMap are left alone. A sidecar that
// names a key which the snapshot lacks keeps the live content, and starts.
func TestInjectedContainers(t *testing.T) {
	run.Exclusive(t)
	for _, c := range []struct {
		name string
		late bool
	}{{"a-before", false}, {"z-after", false}, {"z-after-late", true}} {
		t.Run(c.name, func(t *testing.T) {
			container := sidecar("sidecar", 3001, c.late)
			r := newRoom(t, "old", member{kind: "Deployment", app: "web", ways: ways, labels: ", inject: 'yes'"})
			r.space.Set("configmap/sidecar", "NAME", "proxy")
			r.space.SetPolicy("namespace", map[string]string{"pause": "true"})
			time.Sleep(2 * time.Second)
			r.space.Edit(source, "SETTING", "new", "setting.txt", "new", "LATE", "late")
			time.Sleep(3 * time.Second)
			inject(t, c.name, &container)
			r.replace("old", true)
			want := "old"
			if c.late {
				want = "new"
			}
			r.wantSidecar(want)
		})
	}
}

// wantSidecar checks what the injected container of the one pod has read.
func (r *room) wantSidecar(word string) {
	r.t.Helper()
	pods, err := r.running(&r.members[0], 1)
	harness.Must(r.t, err)
	environment, err := process.First()[containerID(&pods[0], "sidecar")].Environment()
	harness.Must(r.t, err)
	if environment["FROM_SETTING"] != word || environment["OWN_NAME"] != "proxy" {
		var read []string
		for _, name := range []string{"FROM_SETTING", "OWN_NAME", "LATE"} {
			read = append(read, name+"="+environment[name])
		}
		r.t.Errorf("the sidecar has read %s, want %q, and its own", strings.Join(read, ", "), word)
	}
	if word == "new" && environment["LATE"] != "late" {
		r.t.Errorf("the sidecar has LATE=%q", environment["LATE"])
	}
}
