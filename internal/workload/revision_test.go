package workload_test

import (
	"strings"
	"testing"

	"github.com/configstamp/configstamp/internal/workload"
)

// What the API server keeps of the template below, as kubectl get --raw shows it.
const (
	undoneTemplate = `{"metadata":{"labels":{"app":"web"},"annotations":{"team":"blue","configmap.configstamp.dev/web-message":"v1:1"}},"spec":{"containers":[{"name":"web","image":"web:1","resources":{},"terminationMessagePath":"/dev/termination-log","imagePullPolicy":"IfNotPresent"}],"restartPolicy":"Always","securityContext":{},"schedulerName":"default-scheduler"}}`
	replicaSet     = `{"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{"name":"web-5d4f","namespace":"shop","uid":"r","creationTimestamp":"2026-03-14T09:26:00Z",
"annotations":{"deployment.kubernetes.io/revision":"7"},"ownerReferences":[{"apiVersion":"apps/v1","kind":"Deployment","name":"web","uid":"d","controller":true,"blockOwnerDeletion":true}]},
"spec":{"replicas":0,"selector":{"matchLabels":{"app":"web","pod-template-hash":"5d4f"}},"template":{"metadata":{"creationTimestamp":null,"labels":{"app":"web","pod-template-hash":"5d4f"},"annotations":{"configmap.configstamp.dev/web-message":"v1:2","team":"blue"}},
"spec":{"containers":[{"name":"web","image":"web:1","resources":{},"terminationMessagePath":"/dev/termination-log","imagePullPolicy":"IfNotPresent"}],"restartPolicy":"Always","securityContext":{},"schedulerName":"default-scheduler"}}},"status":{"replicas":0}}`
	controllerRevision = `{"metadata":{"name":"web-7c9b","labels":{"app":"web","controller.kubernetes.io/hash":"7c9b"},"annotations":{"team":"blue"},"creationTimestamp":"2026-03-14T09:26:00Z",
"ownerReferences":[{"apiVersion":"apps/v1","kind":"StatefulSet","name":"web","uid":"d","controller":true}]},"data":{"spec":{"template":{"$patch":"replace","metadata":{"annotations":{"team":"blue"},"creationTimestamp":null,"labels":{"app":"web"}},
"spec":{"containers":[{"image":"web:1","imagePullPolicy":"IfNotPresent","name":"web","resources":{},"terminationMessagePath":"/dev/termination-log"}],"restartPolicy":"Always","schedulerName":"default-scheduler","securityContext":{}}}}},"revision":7}`
)

func TestIsOf(t *testing.T) {
	kind := kindNamed(t, "Deployment")
	for name, raw := range map[string]string{"ReplicaSet": replicaSet, "ControllerRevision": controllerRevision} {
		for about, test := range map[string]struct {
			from, to string // in what is sent
			want     bool
		}{
			"as it was":                {"", "", true},
			"our annotations":          {`"v1:1"`, `"v1:3"`, true},
			"no annotation of ours":    {`,"configmap.configstamp.dev/web-message":"v1:1"`, ``, true},
			"a null creationTimestamp": {`{"metadata":{`, `{"metadata":{"creationTimestamp":null,`, true},
			"another annotation":       {`"team":"blue"`, `"team":"red"`, false},
			"one more":                 {`"team":"blue"`, `"team":"blue","injected":"yes"`, false},
			"another label":            {`"app":"web"`, `"app":"other"`, false},
			"one label more":           {`"app":"web"`, `"app":"web","tier":"x"`, false},
			"another image":            {`web:1`, `web:2`, false},
			"a container more":         {`[{"name":"web"`, `[{"name":"sidecar"},{"name":"web"`, false},
			"a default that is gone":   {`,"restartPolicy":"Always"`, ``, false},
		} {
			t.Run(name+": "+about, func(t *testing.T) {
				revision, err := workload.DecodeRevision([]byte(raw))
				if err != nil {
					t.Fatal(err)
				}
				if revision.Owner != "d" || revision.Number != 7 || !strings.HasPrefix(revision.Name, "web-") {
					t.Errorf("read as %s, revision %d, of %s", revision.Name, revision.Number, revision.Owner)
				}
				template := decode(t, kind, string(wrap(kind, `{"name":"web"}`, strings.Replace(undoneTemplate, test.from, test.to, 1)))).Template
				if got := template.IsOf(revision); got != test.want {
					t.Errorf("IsOf() = %v", got)
				}
			})
		}
	}
}

func TestSameButAnnotations(t *testing.T) {
	kind := kindNamed(t, "Deployment")
	for about, test := range map[string]struct {
		from, to string
		want     bool
	}{
		"as it was":       {"", "", true},
		"rollout restart": {`"team":"blue"`, `"team":"blue","kubectl.kubernetes.io/restartedAt":"now"`, true},
		"set image":       {`web:1`, `web:2`, false},
		"a label":         {`"app":"web"`, `"app":"other"`, false},
	} {
		t.Run(about, func(t *testing.T) {
			was := decode(t, kind, string(wrap(kind, `{"name":"web"}`, undoneTemplate))).Template
			is := decode(t, kind, string(wrap(kind, `{"name":"web"}`, strings.Replace(undoneTemplate, test.from, test.to, 1)))).Template
			if got := is.SameButAnnotations(&was); got != test.want {
				t.Errorf("SameButAnnotations() = %v", got)
			}
		})
	}
}

func TestDecodeRevision_OfOddForm(t *testing.T) {
	for _, raw := range []string{``, `[]`, `{"spec":[]}`, `{"data":{"spec":{"template":7}}}`} {
		if revision, err := workload.DecodeRevision([]byte(raw)); err == nil {
			t.Errorf("%s was read as %+v", raw, revision)
		}
	}
	for _, raw := range []string{`{}`, `{"data":null}`, `{"data":{"spec":null}}`} {
		if revision, err := workload.DecodeRevision([]byte(raw)); err != nil || revision.Owner != "" {
			t.Errorf("%s: %+v, %v", raw, revision, err)
		}
	}
}

func TestDecodeNewPod(t *testing.T) {
	pod, err := workload.DecodeNewPod([]byte(`{"metadata":{"generateName":"web-","annotations":{"a":"b"},"ownerReferences":[{"kind":"Node","uid":"n"},{"kind":"ReplicaSet","uid":"r","controller":true}]},
"spec":{"initContainers":[{"name":"i","restartPolicy":"Always"}],"containers":[{"name":"c","env":[{"name":"A","value":"1"},{"name":"B","valueFrom":{"configMapKeyRef":{"name":"m","key":"k"}}},{"name":"C"}]}],"volumes":[{"name":"v","configMap":{"name":"m"}}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	env := pod.Spec.Containers[0].Env
	if len(env) != 3 || env[1].ValueFrom.ConfigMapKeyRef.Name != "m" || pod.Spec.InitContainers[0].RestartPolicy == nil || pod.Spec.Volumes[0].ConfigMap.Name != "m" {
		t.Errorf("read as %+v", pod.Spec)
	}
	if owner := pod.Controller(); owner == nil || owner.UID != "r" || pod.Annotations["a"] != "b" {
		t.Errorf("owner %+v, annotations %v", owner, pod.Annotations)
	}
	if _, err := workload.DecodeNewPod([]byte(`{"spec":{"containers":7}}`)); err == nil {
		t.Error("garbage was read")
	}
}
