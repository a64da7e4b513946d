package podtruth

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	processes := firstProcesses()
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

// firstProcesses are the first processes of the containers of this machine that run the
// app, by the container's ID. A process that is still runc's is none.
func firstProcesses() map[string]string {
	found := map[string]string{}
	files, _ := filepath.Glob("/proc/[0-9]*/cgroup")
	for _, file := range files {
		process := filepath.Dir(file)
		command, err := os.ReadFile(filepath.Join(process, "cmdline"))
		if err != nil || !isApp(string(command)) {
			continue
		}
		groups, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		first, _, _ := strings.Cut(string(groups), "\n")
		found[filepath.Base(first)] = process
	}
	return found
}

// isApp reports whether a command line is the app's.
func isApp(command string) bool {
	words := strings.Split(command, "\x00")
	return len(words) > 2 && (words[1] == "strict" || words[1] == "lenient")
}

// truthOf compares what the containers of a pod have read with what there is now.
func truthOf(pod *corev1.Pod, now content, processes map[string]string) *truth {
	t := &truth{Name: pod.Name, UID: string(pod.UID), Known: len(pod.Status.ContainerStatuses) == len(pod.Spec.Containers)}
	statuses := slices.Clone(pod.Status.ContainerStatuses)
	slices.SortFunc(statuses, func(a, b corev1.ContainerStatus) int { return strings.Compare(a.Name, b.Name) })
	for _, status := range statuses {
		_, id, _ := strings.Cut(status.ContainerID, "://")
		process := processes[id]
		if status.State.Running == nil || process == "" {
			t.Known = false
			continue
		}
		t.IDs = append(t.IDs, id)
		read, ok := readsOf(status.Name, process, now)
		t.Known = t.Known && ok
		t.Reads = append(t.Reads, read...)
	}
	return t
}

// readsOf is what a container's first process has read, by the container's name; ok is false
// when it has ended meanwhile.
func readsOf(container, process string, now content) (read []reads, ok bool) {
	text, err := os.ReadFile(filepath.Join(process, "environ"))
	if err != nil || len(text) == 0 {
		return nil, false
	}
	environment := map[string]string{}
	for pair := range strings.SplitSeq(string(text), "\x00") {
		name, value, _ := strings.Cut(pair, "=")
		environment[name] = value
	}
	root := filepath.Join(process, "root")
	switch container {
	case "env":
		return []reads{
			{"configmap/env", "env", environment["SETTING"] == now["configmap/env"]["SETTING"] && environment["SETTING_EXTRA"] == now["configmap/env"]["EXTRA"]},
			{"secret/env", "env", environment["TOKEN"] == now["secret/env"]["TOKEN"] && environment["TOKEN_EXTRA"] == now["secret/env"]["EXTRA"]},
		}, true
	case "from", "more":
		return []reads{
			{"configmap/env", "envFrom", maps.Equal(prefixed(environment, "CM_"), now["configmap/env"])},
			{"secret/env", "envFrom", maps.Equal(prefixed(environment, "S_"), now["secret/env"])},
		}, true
	case "sub":
		setting, err1 := os.ReadFile(filepath.Join(root, "sub", "setting"))
		token, err2 := os.ReadFile(filepath.Join(root, "sub", "token"))
		return []reads{
			{"configmap/file", "subPath", string(setting) == now["configmap/file"]["setting"]},
			{"secret/file", "subPath", string(token) == now["secret/file"]["token"]},
		}, err1 == nil && err2 == nil
	case "live":
		settings, ok1 := files(filepath.Join(root, "live", "settings"))
		tokens, ok2 := files(filepath.Join(root, "live", "tokens"))
		return []reads{
			{"configmap/live", "live", maps.Equal(settings, now["configmap/live"])},
			{"secret/live", "live", maps.Equal(tokens, now["secret/live"])},
		}, ok1 && ok2
	}
	return nil, false
}

// prefixed are the variables with a prefix, without it.
func prefixed(environment map[string]string, prefix string) map[string]string {
	found := map[string]string{}
	for name, value := range environment {
		if key, ok := strings.CutPrefix(name, prefix); ok {
			found[key] = value
		}
	}
	return found
}

// files are those that a volume shows, with their content.
func files(dir string) (map[string]string, bool) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, false
	}
	found := map[string]string{}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), "..") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return nil, false
		}
		found[entry.Name()] = string(text)
	}
	return found, true
}
