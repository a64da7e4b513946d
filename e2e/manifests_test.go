package e2e

import (
	"fmt"
	"strings"
)

// deployment is a Deployment whose one container reads sources by envFrom.
func deployment(name string, sources ...string) string {
	return workload("Deployment", name, envFrom(sources...))
}

// workload is an object of any kind with one container, to which the lines of
// container (as in a Container) and pod (as in a PodSpec) are added.
func workload(kind, name, container string, pod ...string) string {
	labels := "{app: " + name + "}"
	template := fmt.Sprintf("metadata: {labels: %s}\nspec:\n%s", labels, indent(podSpec(kind, container, pod...), 2))
	selector := fmt.Sprintf("selector: {matchLabels: %s}\n", labels)
	head := fmt.Sprintf("kind: %s\nmetadata: {name: %s, labels: %s}\n", kind, name, labels)
	switch kind {
	case "Deployment":
		return "apiVersion: apps/v1\n" + head + "spec:\n" + indent("replicas: 1\nrevisionHistoryLimit: 1000\n"+selector+"template:\n"+indent(template, 2), 2)
	case "ReplicaSet":
		return "apiVersion: apps/v1\n" + head + "spec:\n" + indent("replicas: 1\n"+selector+"template:\n"+indent(template, 2), 2)
	case "StatefulSet":
		return "apiVersion: apps/v1\n" + head + "spec:\n" + indent("replicas: 1\nserviceName: none\nrevisionHistoryLimit: 1000\n"+selector+"template:\n"+indent(template, 2), 2)
	case "DaemonSet":
		return "apiVersion: apps/v1\n" + head + "spec:\n" + indent("revisionHistoryLimit: 1000\n"+selector+"template:\n"+indent(template, 2), 2)
	case "CronJob":
		return "apiVersion: batch/v1\n" + head + "spec:\n" + indent("schedule: \"0 0 1 1 *\"\nsuspend: true\njobTemplate:\n  spec:\n    template:\n"+indent(template, 6), 2)
	case "Job":
		return "apiVersion: batch/v1\n" + head + "spec:\n" + indent("suspend: true\ntemplate:\n"+indent(template, 2), 2)
	case "ReplicationController":
		return "apiVersion: v1\n" + head + "spec:\n" + indent(fmt.Sprintf("replicas: 1\nselector: %s\n", labels)+"template:\n"+indent(template, 2), 2)
	case "Pod":
		return "apiVersion: v1\n" + head + "spec:\n" + indent(podSpec(kind, container, pod...), 2)
	}
	panic("no such kind: " + kind)
}

// podSpec never starts anywhere: there are no nodes.
func podSpec(kind, container string, pod ...string) string {
	spec := "terminationGracePeriodSeconds: 0\nautomountServiceAccountToken: false\ncontainers:\n- name: app\n  image: registry.example/app:1\n" + indent(container, 2)
	if kind == "CronJob" || kind == "Job" {
		spec = "restartPolicy: Never\n" + spec
	}
	return spec + strings.Join(pod, "")
}

// envFrom are the lines of a container that reads whole sources, given as
// configmap/<name> or secret/<name>; a "?" at the end makes one optional.
func envFrom(sources ...string) string {
	lines := ""
	for _, source := range sources {
		kind, name, _ := strings.Cut(source, "/")
		bare := strings.TrimSuffix(name, "?")
		lines += fmt.Sprintf("- %s: {name: %q, optional: %t}\n", map[string]string{"configmap": "configMapRef", "secret": "secretRef"}[kind], bare, bare != name)
	}
	if lines == "" {
		return ""
	}
	return "envFrom:\n" + lines
}

func indent(text string, by int) string {
	pad := strings.Repeat(" ", by)
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(lines) == 1 && lines[0] == "" {
		return ""
	}
	return pad + strings.Join(lines, "\n"+pad) + "\n"
}
