package workload

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configstamp/configstamp/checksum"
)

// Metadata is what is read of an object's metadata.
type Metadata struct {
	Name              string                  `json:"name"`
	GenerateName      string                  `json:"generateName"`
	Namespace         string                  `json:"namespace"`
	UID               types.UID               `json:"uid"`
	ResourceVersion   string                  `json:"resourceVersion"`
	Generation        int64                   `json:"generation"`
	DeletionTimestamp *metav1.Time            `json:"deletionTimestamp"`
	Labels            map[string]string       `json:"labels"`
	Annotations       map[string]string       `json:"annotations"`
	Owners            []metav1.OwnerReference `json:"ownerReferences"`
}

// Object is one workload, read as far as the rules look at it. Nothing else of
// it is kept, and it is never written back: changes are patches.
type Object struct {
	Kind *Kind
	Metadata
	Template Template
}

// shapeOf makes the Go type that reads an object whose pod template is at path in one pass, so
// that a kind is data and not code:
//
//	struct { Metadata Metadata `json:"metadata"`; Next struct { Next sparingTemplate `json:"template"` } `json:"spec"` }
func shapeOf(path []string) reflect.Type {
	fields := []reflect.StructField{{Name: "Metadata", Type: reflect.TypeFor[Metadata](), Tag: `json:"metadata"`}}
	if len(path) == 0 { // the object is the template
		return reflect.StructOf(append(fields, reflect.StructField{Name: "Next", Type: reflect.TypeFor[span](), Tag: `json:"spec"`}))
	}
	next := reflect.TypeFor[sparingTemplate]()
	for i := len(path) - 1; i > 0; i-- {
		next = reflect.StructOf([]reflect.StructField{step(path[i], next)})
	}
	return reflect.StructOf(append(fields, step(path[0], next)))
}

func step(name string, next reflect.Type) reflect.StructField {
	return reflect.StructField{Name: "Next", Type: next, Tag: reflect.StructTag(fmt.Sprintf("json:%q", name))}
}

// at is what a value of a known type holds.
func at[T any](value reflect.Value) *T { return value.Addr().Interface().(*T) } //nolint:forcetypeassert // shapeOf made it

// Decode reads one object of the kind from JSON, of which its Template is a
// part. Field names count with their case, as the API server reads them.
func (k *Kind) Decode(raw []byte) (*Object, error) {
	value := reflect.New(k.shape)
	if err := unmarshal(raw, value.Interface()); err != nil {
		return nil, fmt.Errorf("reading a %s: %w", k.Name, plain(err))
	}
	value = value.Elem()
	object := &Object{Kind: k}
	object.Metadata = *at[Metadata](value.Field(0))
	if len(k.Template) == 0 {
		object.Template = Template{
			Metadata: templateMetadata{Annotations: object.Annotations, written: true},
			Spec:     at[span](value.Field(1)).of(raw),
		}
		return object, nil
	}
	template := at[sparingTemplate](k.templateIn(value))
	object.Template = Template{Metadata: template.Metadata, Spec: template.Spec.of(raw)}
	return object, nil
}

// templateIn is the pod template in a value of a type that shapeOf made.
func (k *Kind) templateIn(value reflect.Value) reflect.Value {
	for range k.Template {
		value = value.Field(value.NumField() - 1)
	}
	return value
}

// DecodeMetadata reads an object of which Decode cannot read the template.
func (k *Kind) DecodeMetadata(raw []byte) (*Object, error) {
	var read struct {
		Metadata Metadata `json:"metadata"`
	}
	if err := unmarshal(raw, &read); err != nil {
		return nil, fmt.Errorf("reading the metadata of a %s: %w", k.Name, plain(err))
	}
	return &Object{Kind: k, Metadata: read.Metadata}, nil
}

// plain drops what a JSON error quotes of the document: a Pod template may
// hold a secret in plain text. nil stays nil.
func plain(err error) error {
	var syntax *jsontext.SyntacticError
	var kind *json.SemanticError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &syntax):
		return fmt.Errorf("it is not JSON, at byte %d", syntax.ByteOffset)
	case errors.As(err, &kind):
		if field := known(kind.JSONPointer); field != "" {
			return fmt.Errorf("field %s has the wrong type", field)
		}
	}
	return errors.New("it does not have the form of its kind")
}

// known is the beginning of a path that is the API's own words; what follows,
// such as the key of an annotation, is a user's.
func known(pointer jsontext.Pointer) string {
	var names []string
	for name := range pointer.Tokens() {
		switch name {
		case "metadata", "labels", "annotations", "ownerReferences", "spec", "template", "jobTemplate", "volumes",
			"containers", "initContainers", "ephemeralContainers", "env", "envFrom", "volumeMounts", "imagePullSecrets",
			"items", "status", "conditions", "containerStatuses", "initContainerStatuses", "state", "waiting", "running",
			"replicas", "selector", "strategy", "updateStrategy", "rollingUpdate":
			names = append(names, name)
		default:
			if _, err := strconv.Atoi(name); err != nil {
				return strings.Join(names, ".")
			}
		}
	}
	return strings.Join(names, ".")
}

// Records is what is on record in the object. An unreadable baseline is an
// error, and counts as none.
func (o *Object) Records() (checksum.Records, error) {
	return checksum.RecordsIn(o.Annotations, o.Template.Metadata.Annotations)
}

// TemplateAnnotations are those of the pod template; nil for a kind that is its
// own template.
func (o *Object) TemplateAnnotations() map[string]string {
	if len(o.Kind.Template) == 0 {
		return nil
	}
	return o.Template.Metadata.Annotations
}

// Foreign is what the object's annotations say in the dialects of other products.
func (o *Object) Foreign(dialects []checksum.Dialect) *checksum.Foreign {
	return checksum.Translate(dialects, o.Namespace, o.Annotations, o.TemplateAnnotations())
}

// Controller is the owner that controls the object (metadata.ownerReferences
// with controller: true), nil when there is none.
func (o *Object) Controller() *metav1.OwnerReference {
	for i := range o.Owners {
		if o.Owners[i].Controller != nil && *o.Owners[i].Controller {
			return &o.Owners[i]
		}
	}
	return nil
}

// RolledByOwner reports whether the object belongs to a controller that makes
// the pods' template, so that it is left alone: any controlled object of a
// kind that is stamped at creation only; a ReplicaSet that a Deployment or an Argo Rollout has made and that
// is about to be adopted again, as when a backup brings it back first; and whatever an object of a group of
// custom kinds in the table controls (a Deployment of Knative's Revision), but for
// groups whose row names one kind of Owner. A Deployment that another custom
// resource owns is a workload like any other.
func (o *Object) RolledByOwner(kinds Table) bool {
	owner := o.Controller()
	if owner == nil {
		return o.Kind.Name == replicaSet && kinds.made(replicaSet) && hashOf(o.Labels) != ""
	}
	group, _, _ := strings.Cut(owner.APIVersion, "/")
	return o.Kind.CreateOnly || kinds.Rolls(schema.GroupKind{Group: group, Kind: owner.Kind})
}

// FullName is namespace/name, with the generated name's stem while the API
// server has not made the name yet.
func (o *Object) FullName() string {
	name := o.Name
	if name == "" {
		name = o.GenerateName + "*"
	}
	return o.Namespace + "/" + name
}

// mostKeys is how many keys the references of a pod template may select, all
// together. Few workloads select a hundred; but a projected volume of N sources that
// is mounted by M subPaths selects N times M, which is more than there is memory for
// long before the API server finds the object too large.
const mostKeys = 100_000

// References lists what the pod template names.
func (o *Object) References() ([]checksum.Reference, error) {
	spec, err := o.Template.PodSpec()
	if err != nil {
		return nil, fmt.Errorf("reading the pod template of %s %s: %w", o.Kind.Name, o.FullName(), err)
	}
	references := checksum.References(spec)
	keys := 0
	for i := range references {
		keys += len(references[i].Keys)
	}
	if keys > mostKeys {
		return nil, fmt.Errorf("reading the pod template of %s %s: it selects %d keys, and no more than %d are read: mount fewer subPaths of projected volumes", o.Kind.Name, o.FullName(), keys, mostKeys)
	}
	return references, nil
}

// TemplateWritten is when the pod template was last written, as far as the
// object's managedFields say: the newest time of an entry that owns a field of
// it. It may be later than the write itself when its writer wrote other fields
// afterwards; zero when nothing is known. by is the field manager of that entry.
func (k *Kind) TemplateWritten(raw []byte) (newest time.Time, by string) {
	var object struct {
		Metadata struct {
			ManagedFields []managedFields `json:"managedFields"`
		} `json:"metadata"`
	}
	if err := unmarshal(raw, &object); err != nil {
		return newest, ""
	}
	for _, entry := range object.Metadata.ManagedFields {
		if entry.writes(k.Template) && entry.Time.After(newest) {
			newest, by = entry.Time.Time, entry.Manager
		}
	}
	return newest, by
}

func owns(fields jsontext.Value, path []string) bool {
	for _, name := range path {
		var inner map[string]jsontext.Value
		if err := unmarshal(fields, &inner); err != nil {
			return false
		}
		next, ok := inner["f:"+name]
		if !ok {
			return false
		}
		fields = next
	}
	return true
}

// managedFields is one entry of metadata.managedFields.
type managedFields struct {
	Manager     string         `json:"manager"`
	Time        *metav1.Time   `json:"time"`
	Subresource string         `json:"subresource"`
	Fields      jsontext.Value `json:"fieldsV1"`
}

// writes reports whether an entry owns something at a path, and has a time.
func (m *managedFields) writes(path []string) bool {
	return m.Time != nil && m.Subresource == "" && owns(m.Fields, path)
}
