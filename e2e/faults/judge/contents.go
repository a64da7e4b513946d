package judge

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/configstamp/configstamp/e2e/harness"
)

const absent = "v1:absent"

// contents are what one source held, in order.
type contents struct {
	namespace, kind, name string
	states                []state
}

// state is what a source held from a version on; data is nil while it did not exist.
type state struct {
	version int64
	data    map[string][]byte
	object  *unstructured.Unstructured
	seen    time.Time
}

// contentsOf gathers the contents of every source of a history.
func (h *History) contentsOf() map[string]*contents {
	all := map[string]*contents{}
	for _, event := range h.Events {
		kind := event.Object.GetKind()
		if kind != "ConfigMap" && kind != "Secret" {
			continue
		}
		source := Name(event.Object)
		if all[source] == nil {
			all[source] = h.never(source)
		}
		next := state{version: event.Version, seen: event.Seen}
		if event.Type != watch.Deleted {
			next.data, next.object = dataOf(event.Object), event.Object
		}
		all[source].states = append(all[source].states, next)
	}
	return all
}

// never is a source that has not existed yet.
func (h *History) never(source string) *contents {
	kind, name, _ := strings.Cut(source, "/")
	return &contents{namespace: h.Namespace, kind: kind, name: name, states: []state{{}}}
}

// dataOf is all keys of a source, whatever field holds them; never nil.
func dataOf(object *unstructured.Unstructured) map[string][]byte {
	data := map[string][]byte{}
	plain, _, _ := unstructured.NestedStringMap(object.Object, "data")
	coded, _, _ := unstructured.NestedStringMap(object.Object, "binaryData")
	if object.GetKind() == "Secret" {
		plain, coded = nil, plain
	}
	for key, value := range plain {
		data[key] = []byte(value)
	}
	for key, value := range coded {
		if bytes, err := base64.StdEncoding.DecodeString(value); err == nil {
			data[key] = bytes
		}
	}
	return data
}

// content is one content of a selection, and from which version on it was there.
type content struct {
	version int64
	digest  string
}

// under lists the contents of a selection as digests that are written like
// value: under its key, and over all keys if it says so. ok is false when no
// such digest can be worked out.
func (c *contents) under(keys []harness.Key, s selection, value string) (list []content, ok bool) {
	var material []byte
	var names []string
	switch parts := strings.Split(value, ":"); {
	case value == absent:
	case len(parts) != 4 || parts[0] != "v1":
		return nil, false
	default:
		for _, key := range keys {
			if harness.KeyID(key.Material) == parts[1] {
				material = key.Material
			}
		}
		if names = s.keys; parts[2] == "all" {
			names = nil
		}
		if material == nil {
			return nil, false
		}
	}
	for _, one := range c.states {
		digest := absent
		if one.data != nil {
			digest = harness.Digest(material, c.kind, c.namespace, c.name, one.data, names)
		}
		if len(list) == 0 || list[len(list)-1].digest != digest {
			list = append(list, content{one.version, digest})
		}
	}
	return list, true
}

// at is the state that is there at a version.
func (c *contents) at(version int64) state {
	found := c.states[0]
	for _, one := range c.states {
		if one.version <= version {
			found = one
		}
	}
	return found
}

func (c *contents) last() state { return c.states[len(c.states)-1] }

// selection is what a template takes of one source.
type selection struct {
	source   string
	keys     []string // nil: all
	required bool     // the source
	needed   []string // keys without which no container starts
}

// missing reports whether no container can start for the want of it.
func (s selection) missing(now state) bool {
	if now.data == nil {
		return s.required || len(s.needed) > 0
	}
	return slices.ContainsFunc(s.needed, func(key string) bool { _, ok := now.data[key]; return !ok })
}

// selectionsOf reads what a workload's template references: env, envFrom, and
// volumes of one source with or without items, which is what runs use. It is a
// second opinion, and written without a look at the product's.
func selectionsOf(object *unstructured.Unstructured) map[string]selection {
	return selectionsIn(object, append(templatePath(object), "spec")...)
}

func selectionsIn(object *unstructured.Unstructured, path ...string) map[string]selection {
	var pod podSpec
	raw, _, _ := unstructured.NestedMap(object.Object, path...)
	if text, err := json.Marshal(raw); err != nil || json.Unmarshal(text, &pod) != nil {
		return nil
	}
	found := map[string]selection{}
	add := func(kind string, r sourceRef, keys []string, all bool) {
		name := r.Name + r.SecretName
		if name == "" {
			return
		}
		source := kind + "/" + name
		s, known := found[source]
		if !known {
			s = selection{source: source, keys: []string{}}
		}
		if all {
			s.keys = nil
		} else if s.keys != nil {
			s.keys = slices.Compact(slices.Sorted(slices.Values(append(s.keys, keys...))))
		}
		if !r.Optional {
			s.required = true
			s.needed = append(s.needed, keys...)
		}
		found[source] = s
	}
	mounted := map[string]bool{}
	for _, c := range append(pod.InitContainers, pod.Containers...) {
		for _, from := range c.EnvFrom {
			add("configmap", from.ConfigMapRef, nil, true)
			add("secret", from.SecretRef, nil, true)
		}
		for _, variable := range c.Env {
			add("configmap", variable.ValueFrom.ConfigMapKeyRef, []string{variable.ValueFrom.ConfigMapKeyRef.Key}, false)
			add("secret", variable.ValueFrom.SecretKeyRef, []string{variable.ValueFrom.SecretKeyRef.Key}, false)
		}
		for _, mount := range c.VolumeMounts {
			mounted[mount.Name] = true
		}
	}
	for _, volume := range pod.Volumes {
		if !mounted[volume.Name] {
			continue
		}
		add("configmap", volume.ConfigMap, volume.ConfigMap.keys(), len(volume.ConfigMap.Items) == 0)
		add("secret", volume.Secret, volume.Secret.keys(), len(volume.Secret.Items) == 0)
	}
	return found
}

type podSpec struct {
	InitContainers, Containers []struct {
		EnvFrom []struct{ ConfigMapRef, SecretRef sourceRef }
		Env     []struct {
			ValueFrom struct{ ConfigMapKeyRef, SecretKeyRef sourceRef }
		}
		VolumeMounts []struct{ Name string }
	}
	Volumes []struct {
		Name              string
		ConfigMap, Secret sourceRef
	}
}

type sourceRef struct {
	Name, SecretName, Key string
	Optional              bool
	Items                 []struct{ Key string }
}

func (r sourceRef) keys() []string {
	var keys []string
	for _, item := range r.Items {
		keys = append(keys, item.Key)
	}
	return keys
}

func templatePath(object *unstructured.Unstructured) []string {
	if object.GetKind() == "CronJob" {
		return []string{"spec", "jobTemplate", "spec", "template"}
	}
	return []string{"spec", "template"}
}

// recordsOf is what is on record in a workload: the baseline, else the stamp.
func recordsOf(object *unstructured.Unstructured, selections map[string]selection) map[string]string {
	records := map[string]string{}
	stamps, baseline := harness.Stamps(object), harness.Baseline(object)
	for source := range selections {
		if value, ok := stamps[harness.StampKey(source)]; ok {
			records[source] = value
		}
		if value, ok := baseline[source]; ok {
			records[source] = value
		}
	}
	return records
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
