package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/rest"

	"github.com/configstamp/configstamp/internal/workload"
)

// builder reads objects of a namespace ("" for all), as kubectl does.
func (p *plugin) builder(namespace string) *resource.Builder {
	return resource.NewBuilder(p.config).Unstructured().RequestChunksOf(500).
		NamespaceParam(namespace).DefaultNamespace().AllNamespaces(namespace == "")
}

// metadataOnly has the API server leave out all but the metadata of one object, such as the content of a Secret.
func metadataOnly(request *rest.Request) {
	request.SetHeader("Accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1")
}

// metadataListOnly does so for lists.
func metadataListOnly(request *rest.Request) {
	request.SetHeader("Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")
}

// target is an object, as the API server has it.
type target struct {
	*resource.Info
	// kind is the row of a workload's kind, nil for other objects.
	kind *workload.Kind
}

func (t *target) object() *unstructured.Unstructured {
	return t.Object.(*unstructured.Unstructured) //nolint:forcetypeassert // builder reads no other
}

// String names the object as kubectl does: deployment/web, rollout.argoproj.io/web.
func (t *target) String() string {
	kind := t.Mapping.GroupVersionKind
	text := strings.ToLower(kind.Kind)
	if strings.Contains(kind.Group, ".") {
		text += "." + kind.Group
	}
	return text + "/" + t.Name
}

// place names the object in a sentence: deployment/web in namespace shop.
func (t *target) place() string {
	if t.Namespace == "" {
		return t.String()
	}
	return t.String() + " in namespace " + t.Namespace
}

// words names the object in a command: deployment/web -n shop.
func (t *target) words() string {
	if t.Namespace == "" {
		return t.String()
	}
	return t.String() + " -n " + t.Namespace
}

// decode reads a workload. raw is its JSON.
func (t *target) decode() (object *workload.Object, raw []byte, err error) {
	if raw, err = t.object().MarshalJSON(); err == nil {
		object, err = t.kind.Decode(raw)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("reading %s: %w", t.place(), err)
	}
	return object, raw, nil
}

// with returns the target as another answer of the API server has it.
func (t *target) with(object runtime.Object) *target {
	info := *t.Info
	info.Object = object
	object.GetObjectKind().SetGroupVersionKind(t.Mapping.GroupVersionKind) // which may be PartialObjectMetadata
	return &target{&info, t.kind}
}

// patch sends a patch, and returns the object as it is then, and the API server's warnings.
// resource.Helper returns no warnings, and does not end with the context.
func (t *target) patch(ctx context.Context, kind types.PatchType, body []byte, options *metav1.PatchOptions) (after *target, warnings []string, err error) {
	return t.answered(t.Client.Patch(kind).NamespaceIfScoped(t.Namespace, t.Namespaced()).Resource(t.Mapping.Resource.Resource).Name(t.Name).
		VersionedParams(options, metav1.ParameterCodec).Body(body).Do(ctx))
}

// answered returns the object of an answer, and its warnings.
func (t *target) answered(result rest.Result) (after *target, warnings []string, err error) {
	for _, warning := range result.Warnings() {
		warnings = append(warnings, warning.Text)
	}
	object, err := result.Get()
	if err != nil {
		return nil, warnings, t.refused(err)
	}
	return t.with(object), warnings, nil
}

// refused says on which object the API server refused a request.
func (t *target) refused(err error) error {
	switch {
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), " cannot patch resource "): // else a policy denies it
		return fmt.Errorf("%s: you have no right to change it: %w", t.place(), err)
	case apierrors.IsConflict(err):
		return fmt.Errorf("%s: it was changed in the meantime, so nothing was written; try again: %w", t.place(), err)
	}
	return fmt.Errorf("%s: %w", t.place(), err)
}

// read reads one object. resource is a kind as kubectl takes it.
func (p *plugin) read(namespace, resourceType, name string, transforms ...resource.RequestTransform) (*target, error) {
	infos, err := p.builder(namespace).TransformRequests(transforms...).ResourceTypeOrNameArgs(false, resourceType, name).Do().Infos()
	switch {
	case apierrors.IsNotFound(err):
		return nil, p.missing(err, namespace)
	case err != nil:
		return nil, fmt.Errorf("reading %s %s: %w", resourceType, name, err)
	}
	return &target{Info: infos[0]}, nil
}

// typeOf names the resource of a kind, with its version, as kubectl takes it: deployments.v1.apps.
func typeOf(kind *workload.Kind) string { return kind.Resource + "." + kind.Version + "." + kind.Group }

// named reads the workload, or whatever a workload has made, that args name, such as deployment/web.
func (p *plugin) named(kinds workload.Table, namespace string, args []string) (*target, error) {
	word, name, found := strings.Cut(words(args), "/")
	if !found || name == "" {
		return nil, fmt.Errorf("%q is not a workload: want a kind and a name, such as deployment/web", words(args))
	}
	kind, err := findKind(kinds, word)
	if err != nil {
		return nil, err
	}
	t, err := p.read(namespace, typeOf(kind), name)
	if err != nil {
		return nil, err
	}
	t.kind = kind
	return t, nil
}

// workload reads the workload that args name.
func (p *plugin) workload(kinds workload.Table, namespace string, args []string) (*target, error) {
	t, err := p.named(kinds, namespace, args)
	if err != nil || !t.kind.CreateOnly {
		return t, err
	}
	if owner := metav1.GetControllerOf(t.object()); owner != nil {
		return nil, fmt.Errorf("%s was made by %s/%s: name the workload", t.place(), strings.ToLower(owner.Kind), owner.Name)
	}
	return nil, fmt.Errorf("%s is stamped only when it is created: there is nothing to do", t.place())
}

// eachWorkload visits the workloads of a namespace ("" for all). unseen says which kinds could not be listed, and why.
func (p *plugin) eachWorkload(kinds workload.Table, namespace string, visit func(*target) error) (unseen []string, err error) {
	return p.eachSelected(kinds, namespace, "", visit)
}

// eachSelected is eachWorkload for the workloads with some labels.
func (p *plugin) eachSelected(kinds workload.Table, namespace, selector string, visit func(*target) error) (unseen []string, err error) {
	mapper, err := p.config.ToRESTMapper()
	if err != nil {
		return nil, fmt.Errorf("asking the API server what it serves: %w", err)
	}
	var resourceTypes []string
	for _, kind := range kinds {
		if _, err := mapper.KindFor(kind.GroupVersionResource()); err != nil {
			unseen = append(unseen, fmt.Sprintf("%s: the API server does not serve them at the moment", kind))
			continue
		}
		resourceTypes = append(resourceTypes, typeOf(kind))
	}
	more, err := p.list(namespace, selector, resourceTypes, func(info *resource.Info) error {
		of := info.Mapping.Resource
		kind, _ := kinds.Find(of.Group, of.Resource)
		return visit(&target{info, kind})
	})
	return append(unseen, more...), err
}

// list visits the objects of some resources. unseen says which could not be listed, and why.
func (p *plugin) list(namespace, selector string, resourceTypes []string, visit func(*resource.Info) error) (unseen []string, err error) {
	err = p.builder(namespace).ContinueOnError().LabelSelectorParam(selector).ResourceTypeOrNameArgs(true, strings.Join(resourceTypes, ",")).
		Flatten().Do().IgnoreErrors(func(err error) bool {
		away := apierrors.IsForbidden(err) || apierrors.IsServiceUnavailable(err)
		if away {
			unseen = append(unseen, err.Error())
		}
		return away || apierrors.IsNotFound(err) // its definition was deleted a moment ago
	}).Visit(func(info *resource.Info, err error) error {
		if err != nil {
			return err
		}
		return visit(info)
	})
	return unseen, err
}

// missing adds to an error of an object that does not exist which of a similar name do, if the user may list them.
func (p *plugin) missing(err error, namespace string) error {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return err
	}
	var names []string
	of := status.Status().Details
	_ = p.builder(namespace).TransformRequests(metadataListOnly).ResourceTypeOrNameArgs(true, strings.TrimSuffix(of.Kind+"."+of.Group, ".")).
		Do().Visit(func(info *resource.Info, err error) error { // who may not list gets no advice
		if err != nil {
			return err
		}
		return meta.EachListItem(info.Object, func(item runtime.Object) error {
			accessor, err := meta.Accessor(item)
			if err == nil {
				names = append(names, accessor.GetName())
			}
			return err
		})
	})
	where := ""
	if of.Kind != "namespaces" {
		where = " in namespace " + namespace
	}
	return fmt.Errorf("%w%s%s", err, where, didYouMean(of.Name, names))
}
