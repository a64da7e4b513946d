package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/resource"
)

// dryRun sends the ConfigMaps and Secrets of manifests to the API server as dry runs, and prints its warnings. One that
// fails does not stop the others.
func (p *plugin) dryRun(ctx context.Context, files *resource.FilenameOptions) error {
	namespace, enforce, err := p.config.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return fmt.Errorf("reading kubeconfig: %w", err)
	}
	var errs []error
	others := 0
	err = p.builder(namespace).ContinueOnError().FilenameParam(enforce, files).Flatten().Do().IgnoreErrors(func(err error) bool {
		if text, _, quotes := strings.Cut(err.Error(), " is missing in '"); quotes { // the whole manifest
			err = errors.New(text + " is missing")
		}
		if meta.IsNoMatchError(err) {
			others++
		} else {
			errs = append(errs, err)
		}
		return true
	}).Visit(func(info *resource.Info, err error) error {
		if err != nil {
			return err
		}
		if of := info.Mapping.Resource; of.Group != "" || of.Resource != "configmaps" && of.Resource != "secrets" {
			others++
			return nil
		}
		return p.dryRunOf(ctx, &target{Info: info})
	})
	if others > 0 {
		fmt.Fprintf(p.Out, "%s ignored: only ConfigMaps and Secrets are sent.\n", counted(others, "other object is", "other objects are"))
	}
	return errors.Join(append(errs, err)...)
}

// dryRunOf sends the edit that makes an object what a manifest says, and prints the warnings.
func (p *plugin) dryRunOf(ctx context.Context, wanted *target) error {
	info := *wanted.Info
	live, about := &target{Info: &info}, wanted.place()
	var warnings []string
	err := live.Get()
	switch {
	case err == nil:
		_, warnings, err = live.patch(ctx, types.MergePatchType, changeTo(live.object(), wanted.object()), patchOptions(serverDryRun, ""))
	case apierrors.IsNotFound(err):
		about += ", which does not exist yet"
		options := &metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
		_, warnings, err = wanted.answered(wanted.Client.Post().Namespace(wanted.Namespace).Resource(wanted.Mapping.Resource.Resource).
			VersionedParams(options, metav1.ParameterCodec).Body(wanted.Object).Do(ctx))
	default:
		err = live.refused(err)
	}
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("dry run: %w (this needs no right to write: kubectl configstamp users %s)", err, wanted.words())
	case err != nil:
		return fmt.Errorf("dry run: %w", err)
	case len(warnings) == 0:
		about += ": no warning, so nothing restarts, or configstamp does not warn you about such edits there"
	}
	paragraph(p.Out, "", about)
	for _, warning := range warnings {
		paragraph(p.Out, "  ", "Warning: "+warning)
	}
	return nil
}

// changeTo returns the merge patch that gives a live object the data, labels and annotations of a manifest. Keys that
// the manifest does not have are removed; other metadata stays.
func changeTo(live, wanted *unstructured.Unstructured) []byte {
	change := wanted.DeepCopy().Object
	delete(change, "apiVersion")
	delete(change, "kind")
	metadata, _ := change["metadata"].(map[string]any)
	maps.DeleteFunc(metadata, func(field string, _ any) bool { return field != "labels" && field != "annotations" })
	for _, field := range []string{"data", "binaryData"} {
		before, _ := live.Object[field].(map[string]any)
		for key := range before {
			if _, kept, err := unstructured.NestedFieldNoCopy(change, field, key); !kept && err == nil {
				_ = unstructured.SetNestedField(change, nil, field, key) // data: null removes all keys by itself
			}
		}
	}
	return asJSONText(change)
}
