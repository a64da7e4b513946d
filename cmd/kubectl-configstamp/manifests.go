package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/answer"
	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/inspect"
	"github.com/configstamp/configstamp/internal/rollout"
)

// intended is a source as a file has it.
type intended struct {
	at      rollout.SourceRef
	content *checksum.Content
}

// manifestsIn reads the ConfigMaps and Secrets of some files, folders or URLs, as kubectl
// does; others counts what else is in them. What names no namespace is of namespace.
func manifestsIn(files []string, namespace string) (all []intended, others int, err error) {
	infos, err := resource.NewLocalBuilder().Unstructured().
		FilenameParam(false, &resource.FilenameOptions{Filenames: files}).Flatten().Do().Infos()
	if err != nil {
		return nil, 0, fmt.Errorf("reading manifests: %w", err)
	}
	for _, info := range infos {
		object, is := info.Object.(*unstructured.Unstructured)
		if !is || object.GetAPIVersion() != "v1" || object.GetKind() != "ConfigMap" && object.GetKind() != "Secret" {
			others++
			continue
		}
		m, err := manifestOf(object)
		if err != nil {
			return nil, 0, fmt.Errorf("reading %s %s of %s: %w", object.GetKind(), object.GetName(), info.Source, err)
		}
		if m.at.Namespace == "" {
			m.at.Namespace = namespace
		}
		all = append(all, m)
	}
	return all, others, nil
}

// manifestOf condenses a manifest. An error quotes nothing of it.
func manifestOf(object *unstructured.Unstructured) (m intended, err error) {
	m.at = rollout.SourceRef{Namespace: object.GetNamespace(), Source: checksum.Source{Kind: checksum.ConfigMap, Name: object.GetName()}}
	if !m.at.Source.Nameable() {
		return m, fmt.Errorf("no object can have that name")
	}
	converter := runtime.DefaultUnstructuredConverter
	if object.GetKind() == "ConfigMap" {
		var cm corev1.ConfigMap
		if converter.FromUnstructured(object.Object, &cm) != nil {
			return m, fmt.Errorf("it does not have the form of its kind")
		}
		m.content = checksum.ContentOfConfigMap(&cm)
		return m, nil
	}
	var secret corev1.Secret
	if converter.FromUnstructured(object.Object, &secret) != nil {
		return m, fmt.Errorf("it does not have the form of its kind")
	}
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	for key, value := range secret.StringData { // as the API server does
		secret.Data[key] = []byte(value)
	}
	m.at.Source.Kind, m.content = checksum.Secret, checksum.ContentOfSecret(&secret)
	return m, nil
}

// compared are manifests as edits of what the cluster has. Where the user may not look,
// every key of a manifest may change.
func compared(ctx context.Context, cluster *inspect.Cluster, all []intended) (plans []answer.Plan, contents map[rollout.SourceRef]*checksum.Content, err error) {
	contents = map[rollout.SourceRef]*checksum.Content{}
	last := map[rollout.SourceRef]intended{} // of several the last counts
	for _, m := range all {
		last[m.at] = m
	}
	for _, m := range all {
		if last[m.at].content != m.content {
			continue
		}
		was, read, err := cluster.Content(ctx, m.at)
		if err != nil {
			return nil, nil, err
		}
		plan := answer.Plan{At: m.at, Is: m.content}
		if was != nil {
			contents[m.at] = was
		}
		if !read {
			plan.Is = nil
			for i := range m.content.Entries {
				plan.Keys = append(plan.Keys, m.content.Entries[i].Name)
			}
		}
		plans = append(plans, plan)
	}
	return plans, contents, nil
}
