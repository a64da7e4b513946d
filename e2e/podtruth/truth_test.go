package podtruth

import (
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configstamp/configstamp/e2e/podtruth/process"
)

// content is what the API server holds now: a source's keys and values.
type content map[string]map[string]string

// reads is what one container has read of one source.
type reads struct {
	Source, Use string
	Current     bool
}

// truth is what a pod really runs. Known is false while one of its containers does not run,
// or is not found among the processes.
type truth struct {
	Name, UID string
	Known     bool
	// IDs are those of its containers, so that a restart makes another truth.
	IDs   []string
	Reads []reads
}

// all reports whether everything that a pod has read, of a source ("": of any), is current,
// and whether everything is old.
func (t *truth) all(source string) (current, old bool) {
	current, old = true, true
	for _, r := range t.Reads {
		if source == "" || r.Source == source {
			current, old = current && r.Current, old && !r.Current
		}
	}
	return current, old
}

// equal reports whether nothing has happened between two looks at a pod.
func (t *truth) equal(other *truth) bool {
	return other != nil && t.Known == other.Known && slices.Equal(t.IDs, other.IDs) && slices.Equal(t.Reads, other.Reads)
}

// look reads what all pods of a room run, by their names, and what the API server holds.
func (r *room) look() (map[string]*truth, content, error) {
	now, err := r.content()
	if err != nil {
		return nil, nil, err
	}
	pods, err := run.Client.CoreV1().Pods(r.space.Namespace).List(r.t.Context(), metav1.ListOptions{})
	if err != nil {
		return nil, nil, err
	}
	processes := process.First()
	found := map[string]*truth{}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.DeletionTimestamp == nil {
			found[pod.Name] = truthOf(pod, now, processes)
		}
	}
	if !maps.EqualFunc(r.held, now, maps.Equal[map[string]string]) || !maps.EqualFunc(r.seen, found, (*truth).equal) {
		r.held, r.seen, r.still = now, found, time.Now()
	}
	return found, now, nil
}

// content reads all sources of a room.
func (r *room) content() (content, error) {
	now := content{}
	configMaps, err := run.Client.CoreV1().ConfigMaps(r.space.Namespace).List(r.t.Context(), metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range configMaps.Items {
		now["configmap/"+configMaps.Items[i].Name] = configMaps.Items[i].Data
	}
	secrets, err := run.Client.CoreV1().Secrets(r.space.Namespace).List(r.t.Context(), metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range secrets.Items {
		data := map[string]string{}
		for key, value := range secrets.Items[i].Data {
			data[key] = string(value)
		}
		now["secret/"+secrets.Items[i].Name] = data
	}
	return now, nil
}

// truthOf compares what the containers of a pod have read with what there is now.
func truthOf(pod *corev1.Pod, now content, processes map[string]process.Process) *truth {
	t := &truth{Name: pod.Name, UID: string(pod.UID), Known: len(pod.Status.ContainerStatuses) == len(pod.Spec.Containers)}
	statuses := slices.Clone(pod.Status.ContainerStatuses)
	slices.SortFunc(statuses, func(a, b corev1.ContainerStatus) int { return strings.Compare(a.Name, b.Name) })
	for _, status := range statuses {
		_, id, _ := strings.Cut(status.ContainerID, "://")
		first := processes[id]
		if status.State.Running == nil || first == "" {
			t.Known = false
			continue
		}
		t.IDs = append(t.IDs, id)
		read, ok := readsOf(status.Name, first, now)
		t.Known = t.Known && ok
		t.Reads = append(t.Reads, read...)
	}
	return t
}

// readsOf is what a container's first process has read, by the container's name; ok is false
// when it has ended meanwhile.
func readsOf(container string, first process.Process, now content) (read []reads, ok bool) {
	environment, err := first.Environment()
	if err != nil {
		return nil, false
	}
	switch container {
	case "env":
		return []reads{
			{"configmap/env", "env", environment["SETTING"] == now["configmap/env"]["SETTING"] && environment["SETTING_EXTRA"] == now["configmap/env"]["EXTRA"]},
			{"secret/env", "env", environment["TOKEN"] == now["secret/env"]["TOKEN"] && environment["TOKEN_EXTRA"] == now["secret/env"]["EXTRA"]},
		}, true
	case "from", "more":
		return []reads{
			{"configmap/env", "envFrom", maps.Equal(process.Prefixed(environment, "CM_"), now["configmap/env"])},
			{"secret/env", "envFrom", maps.Equal(process.Prefixed(environment, "S_"), now["secret/env"])},
		}, true
	case "sub":
		setting, err1 := first.File("sub", "setting")
		token, err2 := first.File("sub", "token")
		return []reads{
			{"configmap/file", "subPath", setting == now["configmap/file"]["setting"]},
			{"secret/file", "subPath", token == now["secret/file"]["token"]},
		}, err1 == nil && err2 == nil
	case "live":
		settings, err1 := first.Files("live", "settings")
		tokens, err2 := first.Files("live", "tokens")
		return []reads{
			{"configmap/live", "live", maps.Equal(settings, now["configmap/live"])},
			{"secret/live", "live", maps.Equal(tokens, now["secret/live"])},
		}, err1 == nil && err2 == nil
	}
	return nil, false
}
