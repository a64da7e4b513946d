package faults

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Use is one reference of a workload: a source, and how it is read.
type Use struct {
	// Source is configmap/name or secret/name.
	Source string
	// Way is envFrom, env (the key k), volume (all files), items (the file k) or
	// subPath (the file k, read once).
	Way      string
	Optional bool
}

// Reads are uses of whole sources by envFrom; a "?" makes one optional.
func Reads(sources ...string) []Use {
	var uses []Use
	for _, source := range sources {
		uses = append(uses, Use{Source: strings.TrimSuffix(source, "?"), Way: "envFrom", Optional: strings.HasSuffix(source, "?")})
	}
	return uses
}

// Workload makes a manifest of any kind that is stamped anew. It runs nothing:
// there are no nodes, and templates are what counts.
func Workload(kind, name, image string, uses ...Use) *unstructured.Unstructured {
	labels := map[string]any{"app": name}
	container := map[string]any{"name": "app", "image": "registry.example/app:" + image}
	var envFrom, env, mounts, volumes []any
	for _, use := range uses {
		source, bare, _ := strings.Cut(use.Source, "/")
		prefix := map[string]string{"configmap": "configMap", "secret": "secret"}[source]
		ref := map[string]any{"name": bare, "optional": use.Optional}
		switch use.Way {
		case "envFrom":
			envFrom = append(envFrom, map[string]any{prefix + "Ref": ref})
		case "env":
			ref["key"] = "k"
			env = append(env, map[string]any{"name": "V" + string(rune('A'+len(env))), "valueFrom": map[string]any{prefix + "KeyRef": ref}})
		default:
			volume := source + "-" + bare // what is applied is merged by name
			mount := map[string]any{"name": volume, "mountPath": "/" + volume}
			if source == "secret" {
				delete(ref, "name")
				ref["secretName"] = bare
			}
			if use.Way != "volume" {
				ref["items"] = []any{map[string]any{"key": "k", "path": "k"}}
			}
			if use.Way == "subPath" {
				mount["subPath"] = "k"
			}
			mounts = append(mounts, mount)
			volumes = append(volumes, map[string]any{"name": volume, prefix: ref})
		}
	}
	for key, list := range map[string][]any{"envFrom": envFrom, "env": env, "volumeMounts": mounts} {
		if len(list) > 0 {
			container[key] = list
		}
	}
	pod := map[string]any{"containers": []any{container}, "terminationGracePeriodSeconds": int64(0)}
	if len(volumes) > 0 {
		pod["volumes"] = volumes
	}
	template := map[string]any{"metadata": map[string]any{"labels": labels}, "spec": pod}
	spec := map[string]any{"selector": map[string]any{"matchLabels": labels}, "template": template}
	apiVersion := "apps/v1"
	switch kind {
	case "Deployment":
		spec["replicas"], spec["revisionHistoryLimit"] = int64(0), int64(100)
	case "StatefulSet":
		spec["replicas"], spec["serviceName"] = int64(0), "none"
	case "CronJob":
		apiVersion = "batch/v1"
		pod["restartPolicy"] = "Never"
		spec = map[string]any{"schedule": "0 0 1 1 *", "suspend": true, "jobTemplate": map[string]any{"spec": map[string]any{"template": template}}}
	}
	return (&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name, "labels": labels}, "spec": spec,
	}}).DeepCopy()
}
