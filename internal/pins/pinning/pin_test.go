package pinning

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/configstamp/configstamp/checksum"
)

var (
	message  = checksum.Source{Kind: checksum.ConfigMap, Name: "web-message"}
	snapshot = "web-message-3f2a91c07d5e8b4416aa"
	both     = checksum.Pins{message: {Snapshot: snapshot, Uses: []checksum.Use{checksum.Startup, checksum.Live}}}
	startup  = checksum.Pins{message: {Snapshot: snapshot, Uses: []checksum.Use{checksum.Startup}}}
)

func podSpec(t testing.TB, text string) *corev1.PodSpec {
	t.Helper()
	var spec corev1.PodSpec
	if err := yaml.UnmarshalStrict([]byte(text), &spec); err != nil {
		t.Fatal(err)
	}
	return &spec
}

// holding is a snapshot with the keys A and B, and the binary key blob.
func holding(checksum.Source) *checksum.Content {
	return checksum.ContentOfConfigMap(&corev1.ConfigMap{Data: map[string]string{"A": "1", "B": "2"}, BinaryData: map[string][]byte{"blob": {1}}})
}

// told is a result in short lines: what names the snapshot, what does not and why.
func told(r Result) string {
	var lines []string
	for _, change := range r.Changes {
		value := change.Value
		if value == any(snapshot) {
			value = "snapshot"
		}
		lines = append(lines, strings.TrimPrefix(change.Path, "/spec/")+" = "+strings.Trim(strings.ReplaceAll(toText(value), "\n", ""), `"`))
	}
	for _, not := range r.NotPinned {
		if not.Why == TooMany {
			lines = append(lines, "not "+not.Source.String()+": too many")
			continue
		}
		lines = append(lines, "not "+strings.TrimPrefix(not.Path, "/spec/")+": "+[]string{"no snapshot", "other use", "lacks " + not.Key}[not.Why])
	}
	return strings.Join(lines, "\n")
}

func toText(value any) string {
	text, _ := yaml.Marshal(value)
	return string(text)
}

// A volume of N sources that is mounted M times is N times M reads. What is left over pins the
// source that comes first.
func TestPodsThatReadInTooManyPlaces(t *testing.T) {
	other := checksum.Source{Kind: checksum.ConfigMap, Name: "web-other"}
	pins := checksum.Pins{message: both[message], other: {Snapshot: "web-other-3f2a91c07d5e8b4416aa", Uses: []checksum.Use{checksum.Live}}}
	reading := func(sources, mounts int) *corev1.PodSpec {
		spec := podSpec(t, `{containers: [{name: web, envFrom: [{configMapRef: {name: web-message}}]}], volumes: [{name: files, projected: {sources: []}}]}`)
		for range sources {
			of := corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: other.Name}}}
			spec.Volumes[0].Projected.Sources = append(spec.Volumes[0].Projected.Sources, of)
		}
		for range mounts {
			spec.Containers[0].VolumeMounts = append(spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "files"})
		}
		return spec
	}
	if got := Pin(reading(300, 300), pins, holding); len(got.Pinned) != 2 || len(got.NotPinned) > 0 {
		t.Errorf("of 90,000 reads %v is pinned", got.Pinned)
	}
	got := Pin(reading(400, 400), pins, holding)
	if want := "containers/0/envFrom/0/configMapRef/name = snapshot\nnot configmap/web-other: too many"; told(got) != want {
		t.Errorf("of 160,000 reads:\n%s", told(got))
	}
}

func TestPin(t *testing.T) {
	for name, test := range map[string]struct {
		spec string
		pins checksum.Pins
		gone bool
		want string
	}{
		"every place that can name a ConfigMap": {`
initContainers:
- {name: init, env: [{name: X, value: "1"}, {name: A, valueFrom: {configMapKeyRef: {name: web-message, key: A}}}]}
containers:
- name: web
  envFrom: [{configMapRef: {name: other}}, {configMapRef: {name: web-message}}, {secretRef: {name: web-message}}]
  volumeMounts: [{name: files, mountPath: /a}, {name: both, mountPath: /b}]
volumes:
- {name: files, configMap: {name: web-message}}
- {name: both, projected: {sources: [{secret: {name: web-message}}, {configMap: {name: web-message, items: [{key: A, path: a}]}}]}}
`, both, false, `
initContainers/0/env/1/valueFrom/configMapKeyRef/name = snapshot
containers/0/envFrom/1/configMapRef/name = snapshot
volumes/0/configMap/name = snapshot
volumes/1/projected/sources/1/configMap/name = snapshot`},
		"a pin for variables alone leaves a volume that a running container mounts": {`
containers:
- {name: web, envFrom: [{configMapRef: {name: web-message}}], volumeMounts: [{name: files, mountPath: /a}]}
volumes:
- {name: files, configMap: {name: web-message}}
`, startup, false, `
containers/0/envFrom/0/configMapRef/name = snapshot`},
		"a volume is for all uses of all its mounts": {`
initContainers:
- {name: init, volumeMounts: [{name: files, mountPath: /a}]}
- {name: sidecar, restartPolicy: Always, volumeMounts: [{name: files, mountPath: /a}]}
containers: [{name: web}]
volumes:
- {name: files, configMap: {name: web-message}}
`, startup, false, `
not volumes/0/configMap: other use`},
		"a container that names a key which the snapshot lacks keeps the source's name everywhere, and so does what shares a volume with it": {`
containers:
- name: apart
  envFrom: [{configMapRef: {name: web-message}}]
  volumeMounts: [{name: apart, mountPath: /a}]
- name: web
  env: [{name: A, valueFrom: {configMapKeyRef: {name: web-message, key: A}}}]
  volumeMounts: [{name: shared, mountPath: /a}, {name: own, mountPath: /b}]
- name: injected
  env: [{name: NEW, valueFrom: {configMapKeyRef: {name: web-message, key: NEW}}}]
  envFrom: [{configMapRef: {name: web-message}}]
  volumeMounts: [{name: shared, mountPath: /a}]
volumes:
- {name: shared, configMap: {name: web-message}}
- {name: own, configMap: {name: web-message}}
- {name: apart, configMap: {name: web-message}}
`, both, false, `
containers/0/envFrom/0/configMapRef/name = snapshot
volumes/2/configMap/name = snapshot
not containers/1/env/0/valueFrom/configMapKeyRef: lacks NEW
not containers/2/env/0/valueFrom/configMapKeyRef: lacks NEW
not containers/2/envFrom/0/configMapRef: lacks NEW
not volumes/0/configMap: lacks NEW
not volumes/1/configMap: lacks NEW`},
		"a key of binaryData is none for a variable": {`
containers: [{name: web, env: [{name: A, valueFrom: {configMapKeyRef: {name: web-message, key: blob}}}]}]
`, both, false, `
not containers/0/env/0/valueFrom/configMapKeyRef: lacks blob`},
		"a key of binaryData is one for a volume": {`
containers: [{name: web, volumeMounts: [{name: files, mountPath: /a}]}]
volumes: [{name: files, configMap: {name: web-message, items: [{key: blob, path: a}]}}]
`, both, false, `
volumes/0/configMap/name = snapshot`},
		"a subPath that names a key which the snapshot lacks": {`
containers:
- {name: web, volumeMounts: [{name: files, mountPath: /a, subPath: A}]}
- {name: injected, volumeMounts: [{name: more, mountPath: /a, subPath: ..data/NEW}]}
volumes: [{name: files, configMap: {name: web-message}}, {name: more, configMap: {name: web-message}}]
`, both, false, `
volumes/0/configMap/name = snapshot
not volumes/1/configMap: lacks NEW`},
		"a subPath in a volume with items names no key": {`
containers: [{name: web, volumeMounts: [{name: files, mountPath: /a, subPath: conf/app}]}]
volumes: [{name: files, configMap: {name: web-message, items: [{key: A, path: conf/app}]}}]
`, both, false, `
volumes/0/configMap/name = snapshot`},
		"what is optional becomes required where the snapshot holds it": {`
containers:
- name: web
  env:
  - {name: A, valueFrom: {configMapKeyRef: {name: web-message, key: A, optional: true}}}
  - {name: NEW, valueFrom: {configMapKeyRef: {name: web-message, key: NEW, optional: true}}}
  envFrom: [{configMapRef: {name: web-message, optional: true}}]
  volumeMounts: [{name: files, mountPath: /a}]
volumes: [{name: files, configMap: {name: web-message, optional: true}}]
`, both, false, `
containers/0/env/0/valueFrom/configMapKeyRef/name = snapshot
containers/0/env/0/valueFrom/configMapKeyRef/optional = false
containers/0/env/1/valueFrom/configMapKeyRef/name = snapshot
containers/0/envFrom/0/configMapRef/name = snapshot
containers/0/envFrom/0/configMapRef/optional = false
volumes/0/configMap/name = snapshot
volumes/0/configMap/optional = false`},
		"an optional volume with an item that the snapshot lacks": {`
containers: [{name: web, envFrom: [{configMapRef: {name: web-message}}], volumeMounts: [{name: files, mountPath: /a}]}]
volumes: [{name: files, configMap: {name: web-message, optional: true, items: [{key: NEW, path: a}]}}]
`, both, false, `
not containers/0/envFrom/0/configMapRef: lacks NEW
not volumes/0/configMap: lacks NEW`},
		"a volume that nobody mounts": {`
containers: [{name: web}]
volumes: [{name: files, configMap: {name: web-message}}]
`, both, false, ``},
		"no snapshot": {`
containers: [{name: web, envFrom: [{configMapRef: {name: web-message}}]}]
`, both, true, `
not containers/0/envFrom/0/configMapRef: no snapshot`},
		"no snapshot any more, when it was there a moment ago": {`
containers: [{name: web, envFrom: [{configMapRef: {name: web-message-3f2a91c07d5e8b4416aa}}]}]
`, both, true, ``},
		"asked again, after another webhook gave the container a key that the snapshot lacks": {`
containers: [{name: web, envFrom: [{configMapRef: {name: web-message-3f2a91c07d5e8b4416aa}}], env: [{name: NEW, valueFrom: {configMapKeyRef: {name: web-message, key: NEW}}}]}]
`, both, false, `
containers/0/envFrom/0/configMapRef/name = web-message
not containers/0/env/0/valueFrom/configMapKeyRef: lacks NEW
not containers/0/envFrom/0/configMapRef: lacks NEW`},
		"asked again, what was made required stays pinned: the source may be gone": {`
containers: [{name: web, envFrom: [{configMapRef: {name: web-message-3f2a91c07d5e8b4416aa, optional: false}}], env: [{name: NEW, valueFrom: {configMapKeyRef: {name: web-message, key: NEW}}}]}]
`, both, false, `
not containers/0/env/0/valueFrom/configMapKeyRef: lacks NEW`},
		"no pins": {`containers: [{name: web, envFrom: [{configMapRef: {name: web-message}}]}]`, nil, false, ``},
	} {
		t.Run(name, func(t *testing.T) {
			content := holding
			if test.gone {
				content = func(checksum.Source) *checksum.Content { return nil }
			}
			got := Pin(podSpec(t, test.spec), test.pins, content)
			if diff := cmp.Diff(strings.TrimPrefix(test.want, "\n"), told(got)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
