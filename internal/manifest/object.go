package manifest

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/workload"
)

// object is one object of a document, which may be an item of a List.
type object struct {
	document *document
	node     *node
	value    map[string]any
	group    string
	kind     string
	// namespace is as written, name too: "" when it is not there.
	namespace, name string
	annotations     map[string]string
	labels          map[string]string
}

// objects are those of a document.
func (d *document) objects() []*object {
	value, isObject := d.value.(map[string]any)
	if !isObject {
		return nil
	}
	return objectsIn(d, d.root.follow(), value, "", "")
}

// objectsIn is the object, or what its items are. The items of a list of one kind need
// not say their own.
func objectsIn(d *document, n *node, value map[string]any, apiVersion, kind string) []*object {
	if text, written := value["kind"].(string); written {
		kind = text
	}
	if text, written := value["apiVersion"].(string); written {
		apiVersion = text
	}
	items, isList := value["items"].([]any)
	itemKind, named := strings.CutSuffix(kind, "List")
	if isList && named {
		if itemKind == "" {
			apiVersion = ""
		}
		var found []*object
		m, _ := n.find("items")
		for i, item := range items {
			inner, isObject := item.(map[string]any)
			if all := m.value.follow(); isObject && all != nil && i < len(all.items) {
				found = append(found, objectsIn(d, all.items[i].follow(), inner, apiVersion, itemKind)...)
			}
		}
		return found
	}
	group, _, hasGroup := strings.Cut(apiVersion, "/")
	if !hasGroup {
		group = ""
	}
	metadata, _ := value["metadata"].(map[string]any)
	o := &object{document: d, node: n, value: value, group: group, kind: kind, annotations: texts(metadata["annotations"]), labels: texts(metadata["labels"])}
	o.name, _ = metadata["name"].(string)
	o.namespace, _ = metadata["namespace"].(string)
	return []*object{o}
}

// texts are those values of a mapping that are texts.
func texts(value any) map[string]string {
	all, _ := value.(map[string]any)
	found := make(map[string]string, len(all))
	for key, value := range all {
		if text, isText := value.(string); isText {
			found[key] = text
		}
	}
	return found
}

// String names an object for people: Deployment shop/web.
func (o *object) String() string {
	if o.namespace == "" {
		return o.kind + " " + o.name
	}
	return o.kind + " " + o.namespace + "/" + o.name
}

// place is where it begins.
func (o *object) place() string { return o.document.place(o.node.at) }

// workloadKind is the row of the object's kind in a table.
func (o *object) workloadKind(kinds workload.Table) (*workload.Kind, bool) {
	// A row that a flag adds knows the name of the resource alone.
	plural, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Group: o.group, Kind: o.kind})
	i := slices.IndexFunc(kinds, func(k *workload.Kind) bool {
		return k.Group == o.group && (k.Name == o.kind || k.Name == plural.Resource)
	})
	if i < 0 {
		return nil, false
	}
	return kinds[i], true
}

// references are what the pod template of a workload names.
func (o *object) references(kind *workload.Kind) ([]checksum.Reference, error) {
	raw, err := json.Marshal(o.value)
	if err != nil {
		return nil, o.wrong("it cannot be written as JSON")
	}
	read, err := kind.Decode(raw)
	if err != nil {
		return nil, o.wrong(err.Error())
	}
	references, err := read.References()
	if err != nil {
		return nil, o.wrong(err.Error())
	}
	return references, nil
}

func (o *object) wrong(says string) error {
	return fmt.Errorf("%s: %s: %s", o.place(), o, says)
}

// namespaceSettings are what a Namespace says of the workloads in it.
func (o *object) namespaceSettings() map[string]string {
	return checksum.NamespaceOf(&metav1.ObjectMeta{Annotations: o.annotations}).Settings
}

// source is which source the object is; false: none.
func (o *object) source() (checksum.Source, bool) {
	kinds := map[string]checksum.Kind{"ConfigMap": checksum.ConfigMap, "Secret": checksum.Secret}
	kind, known := kinds[o.kind]
	return checksum.Source{Kind: kind, Name: o.name}, known && o.group == "" && o.name != ""
}

// content is what a source holds, as the API server would store it.
func (o *object) content(kind checksum.Kind) (*checksum.Content, error) {
	about := metav1.ObjectMeta{Annotations: o.annotations}
	data, err := values(o, "data", kind == checksum.Secret)
	if kind == checksum.ConfigMap {
		binary, binaryErr := values(o, "binaryData", true)
		cm := corev1.ConfigMap{ObjectMeta: about, BinaryData: binary, Data: make(map[string]string, len(data))}
		for key, value := range data {
			cm.Data[key] = string(value)
		}
		return checksum.ContentOfConfigMap(&cm), errors.Join(err, binaryErr)
	}
	plain, plainErr := values(o, "stringData", false)
	maps.Copy(data, plain) // stringData takes the place of data, key by key
	return checksum.ContentOfSecret(&corev1.Secret{ObjectMeta: about, Data: data}), errors.Join(err, plainErr)
}

// values reads data, binaryData or stringData of a source. Its error quotes no value.
func values(o *object, field string, inBase64 bool) (map[string][]byte, error) {
	read := map[string][]byte{}
	all, isObject := o.value[field].(map[string]any)
	if !isObject && o.value[field] != nil {
		return read, o.wrongIn(field, "", "want keys with strings")
	}
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(all)) {
		text, isText := all[key].(string)
		switch {
		case all[key] == nil:
			read[key] = nil
		case !isText:
			errs = append(errs, o.wrongIn(field, key, "it is not a string: put it in quotes"))
		case !inBase64:
			read[key] = []byte(text)
		default:
			value, err := base64.StdEncoding.DecodeString(text)
			if err != nil {
				errs = append(errs, o.wrongIn(field, key, "it is not base64: is it encrypted, or does it belong into stringData?"))
			}
			read[key] = value
		}
	}
	return read, errors.Join(errs...)
}

// wrongIn says what is wrong with a key of a field.
func (o *object) wrongIn(field, key, says string) error {
	at, where := o.node.at, field
	if m, found := o.node.find(field); found {
		at = m.key.at
		if inner, found := m.value.follow().find(key); found {
			at = inner.key.at
		}
	}
	if key != "" {
		where += "." + key
	}
	return fmt.Errorf("%s: %s: %s: %s", o.document.place(at), o, where, says)
}
