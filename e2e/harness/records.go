package harness

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Stamp is a stamp on the pod template, "" when there is none.
func (s *Space) Stamp(workload, source string) string {
	s.t.Helper()
	return Stamps(s.Get(workload))[StampKey(source)]
}

// templatePath is where an object keeps its pod template.
func templatePath(object *unstructured.Unstructured) []string {
	switch object.GetKind() {
	case "CronJob":
		return []string{"spec", "jobTemplate", "spec", "template"}
	case "Pod":
		return nil
	}
	return []string{"spec", "template"}
}

// TemplateAnnotations are those of an object's pod template.
func TemplateAnnotations(object *unstructured.Unstructured) map[string]string {
	annotations, _, _ := unstructured.NestedStringMap(object.Object, append(slices.Clone(templatePath(object)), "metadata", "annotations")...)
	return annotations
}

// Stamps are our annotations on an object's pod template.
func Stamps(object *unstructured.Unstructured) map[string]string {
	stamps := map[string]string{}
	for key, value := range TemplateAnnotations(object) {
		if kind, _, found := strings.Cut(key, ".configstamp.dev/"); found && slices.Contains([]string{"configmap", "secret", "secretproviderclass"}, kind) {
			stamps[key] = value
		}
	}
	return stamps
}

// Baseline is what is on record on the workload's own metadata, by
// "configmap/web-message".
func Baseline(object *unstructured.Unstructured) map[string]string {
	baseline := map[string]string{}
	if text, ok := object.GetAnnotations()["configstamp.dev/baseline"]; ok {
		if err := json.Unmarshal([]byte(text), &baseline); err != nil {
			return map[string]string{"unreadable": text}
		}
	}
	return baseline
}

// Record is what is on record for a source: the baseline, else the stamp.
func (s *Space) Record(workload, source string) string {
	s.t.Helper()
	object := s.Get(workload)
	if value, ok := Baseline(object)[source]; ok {
		return value
	}
	return Stamps(object)[StampKey(source)]
}

// Digest is what a source's digest has to be now under the newest key: all keys
// of it, or those given. It is worked out by the harness, not by the product.
func (s *Space) Digest(source string, keys ...string) string {
	s.t.Helper()
	return s.DigestUnder(s.newestKey(), source, keys...)
}

// DigestBut is Digest for all keys but those that patterns name (ignore-keys).
func (s *Space) DigestBut(source string, patterns ...string) string {
	s.t.Helper()
	data, err := s.content(source)
	Must(s.t, err)
	kind, name, _ := strings.Cut(source, "/")
	return DigestBut(s.newestKey(), kind, s.Namespace, name, data, patterns)
}

func (s *Space) newestKey() []byte {
	s.t.Helper()
	all, err := s.Run.Keys()
	Must(s.t, err)
	if len(all) == 0 {
		s.t.Fatal("there is no digest key")
	}
	return all[len(all)-1].Material
}

// DigestUnder is Digest under another key.
func (s *Space) DigestUnder(key []byte, source string, keys ...string) string {
	s.t.Helper()
	data, err := s.content(source)
	if apierrors.IsNotFound(err) {
		return "v1:absent"
	}
	Must(s.t, err)
	kind, name, _ := strings.Cut(source, "/")
	return Digest(key, kind, s.Namespace, name, data, keys)
}

func (s *Space) content(source string) (map[string][]byte, error) {
	kind, name, _ := strings.Cut(source, "/")
	if kind == "secret" {
		secret, err := s.Run.Client.CoreV1().Secrets(s.Namespace).Get(context.Background(), name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		return secret.Data, nil
	}
	configMap, err := s.Run.Client.CoreV1().ConfigMaps(s.Namespace).Get(context.Background(), name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	data := maps.Clone(configMap.BinaryData)
	if data == nil {
		data = map[string][]byte{}
	}
	for key, value := range configMap.Data {
		data[key] = []byte(value)
	}
	return data, nil
}
