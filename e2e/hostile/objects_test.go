package hostile

import (
	"encoding/base64"
	"fmt"
	"strings"
)

// How many objects of a name there are: as many as a quota that is not careless allows.
const (
	wides  = 20
	manies = 300
	bigs   = 12
	plains = 40
)

// wide writes a ConfigMap or Secret of up to 1 MiB: of very many keys, or of few.
func (r *raid) wide() {
	const size, key = 900 << 10, 8 // bytes
	keys, letter := pick(r, 1, 100, 4000, 40_000), pick(r, "v", "é", "\n")
	value := strings.Repeat(letter, (size/keys-key)/len(letter))
	data := fields{}
	for i := range keys {
		data[fmt.Sprintf("k%d.%d", i, r.IntN(2))] = value
	}
	metadata := fields{"annotations": fields{"configstamp.dev/ignore-keys": r.patterns("k")}}
	if kind := pick(r, "ConfigMap", "ConfigMap", "Secret"); kind == "Secret" {
		r.put(kind, r.one("wide", wides), fields{"metadata": metadata, "stringData": data})
	} else {
		r.put(kind, r.one("wide", wides), fields{"metadata": metadata, "data": data})
	}
}

// many writes one of hundreds of small sources, of which ConfigMaps and Secrets have the same names.
func (r *raid) many() {
	data := fields{"k": base64.StdEncoding.EncodeToString(fmt.Append(nil, r.IntN(5)))}
	kind, name := pick(r, "ConfigMap", "Secret"), r.one("many", manies)
	if r.IntN(20) == 0 {
		r.remove(kind, name)
		return
	}
	r.put(kind, name, fields{"data": data})
}

// hot writes what many workloads use.
func (r *raid) hot() {
	r.put("ConfigMap", "hot", fields{"data": fields{"k": fmt.Sprint(r.IntN(1 << 30))}})
}

// template writes a workload with a pod template near the limit of a request.
func (r *raid) template() {
	kind := pick(r, "Deployment", "Deployment", "StatefulSet", "DaemonSet", "CronJob", "Job")
	name := r.one("big", bigs)
	if r.IntN(5) == 0 {
		r.remove(kind, name)
		return
	}
	r.put(kind, name, r.workload(kind, name, r.podSpec(), fields{}))
}

// workload is one that never becomes healthy, as nothing runs its pods.
func (r *raid) workload(kind, app string, spec, annotations fields) fields {
	labels := fields{"app": app}
	template := fields{"metadata": fields{"labels": labels, "annotations": annotations}, "spec": spec}
	metadata := fields{"annotations": annotations}
	switch kind {
	case "CronJob":
		spec["restartPolicy"] = "Never"
		return fields{"metadata": metadata, "spec": fields{"schedule": "0 0 1 1 *", "jobTemplate": fields{"spec": fields{"template": template}}}}
	case "Job":
		spec["restartPolicy"] = "Never"
		return fields{"metadata": metadata, "spec": fields{"suspend": true, "template": template}}
	case "Pod":
		return fields{"metadata": fields{"labels": labels, "annotations": annotations}, "spec": spec}
	}
	whole := fields{"selector": fields{"matchLabels": labels}, "template": template}
	if kind == "StatefulSet" {
		whole["serviceName"] = "none"
	}
	return fields{"metadata": metadata, "spec": whole}
}

// podSpec is one of six shapes of thousands of something.
func (r *raid) podSpec() fields {
	many := pick(r, 500, 2000, 4000)
	app := fields{"name": "app", "image": "none"}
	spec := fields{"containers": []any{app}}
	switch r.IntN(6) {
	case 0: // containers
		containers := make([]any, many/2)
		for i := range containers {
			containers[i] = fields{"name": fmt.Sprintf("c%d", i), "image": "none", "envFrom": []any{r.envFrom()}}
		}
		spec["containers"] = containers
	case 1: // variables
		variables := make([]any, many)
		for i := range variables {
			key := fields{"name": r.one(pick(r, "many", "wide"), manies), "key": fmt.Sprintf("k%d.0", r.IntN(40_000)), "optional": r.IntN(2) == 0}
			variables[i] = fields{"name": fmt.Sprintf("V%d", i), "valueFrom": fields{pick(r, "configMapKeyRef", "secretKeyRef"): key}}
		}
		app["env"] = variables
	case 2: // volumes, each with a mount
		volumes, mounts := make([]any, many/2), make([]any, many/2)
		for i := range volumes {
			name := fmt.Sprintf("v%d", i)
			volumes[i] = fields{"name": name, "configMap": fields{"name": r.one("many", manies)}}
			mounts[i] = fields{"name": name, "mountPath": "/" + name, "subPath": pick(r, "k", "k/", "..data", "ü")}
		}
		spec["volumes"], app["volumeMounts"] = volumes, mounts
	case 3: // projected sources, mounted by many paths
		sources := make([]any, many/2)
		for i := range sources {
			sources[i] = fields{pick(r, "configMap", "secret"): fields{"name": r.one(pick(r, "many", "wide"), manies), "items": []any{fields{"key": fmt.Sprintf("k%d.0", i), "path": fmt.Sprintf("p%d", i)}}}}
		}
		mounts := make([]any, r.IntN(500))
		for i := range mounts {
			mounts[i] = fields{"name": "v", "mountPath": fmt.Sprintf("/m%d", i), "subPath": fmt.Sprintf("p%d", r.IntN(many))}
		}
		spec["volumes"], app["volumeMounts"] = []any{fields{"name": "v", "projected": fields{"sources": sources}}}, mounts
	case 4: // keys of one source, each an item and a mount
		items, mounts := make([]any, many), make([]any, many)
		for i := range items {
			items[i] = fields{"key": fmt.Sprintf("k%d.%d", i, r.IntN(2)), "path": fmt.Sprintf("p%d", i)}
			mounts[i] = fields{"name": "v", "mountPath": fmt.Sprintf("/m%d", i), "subPath": fmt.Sprintf("p%d", i)}
		}
		spec["volumes"], app["volumeMounts"] = []any{fields{"name": "v", "configMap": fields{"name": r.one("wide", wides), "items": items}}}, mounts
	case 5: // whole sources
		from := make([]any, many)
		for i := range from {
			from[i] = r.envFrom()
		}
		app["envFrom"] = from
	}
	return spec
}

func (r *raid) envFrom() fields {
	name := pick(r, r.one("many", manies), r.one("wide", wides), "hot")
	return fields{pick(r, "configMapRef", "secretRef"): fields{"name": name, "optional": r.IntN(2) == 0}}
}

// small is a pod spec that uses some of everything.
func (r *raid) small() fields {
	from := []any{fields{"configMapRef": fields{"name": "hot"}}}
	for range r.IntN(20) {
		from = append(from, r.envFrom())
	}
	return fields{"containers": []any{fields{"name": "app", "image": "none", "envFrom": from}}}
}

// patterns is a list near the limits, of what matches late or never.
func (r *raid) patterns(of string) string {
	glob := pick(r, of+"*[0-9]*x", "*"+of+"*?*y", of+"[^a]*.[01]", strings.Repeat("*", 15), of+"%d")
	list := make([]string, pick(r, 1, 250, 256, 257))
	for i := range list {
		if list[i] = glob; strings.Contains(glob, "%d") {
			list[i] = fmt.Sprintf(glob, i)
		}
	}
	return strings.Join(list, ",")
}
