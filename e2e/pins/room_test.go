package pins

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configstamp/configstamp/e2e/harness"
	"github.com/configstamp/configstamp/e2e/pins/process"
)

// source is what all of a room read, each workload in its way.
const source = "configmap/settings"

// The ways of reading it.
const (
	env       = "env"
	envFrom   = "envFrom"
	volume    = "volume"
	subPath   = "subPath"
	projected = "projected"
)

var ways = []string{env, envFrom, volume, subPath, projected}

// member is a workload of a room.
type member struct {
	kind, app string
	// manner is the app's, lenient when it is empty.
	manner   string
	ways     []string
	optional bool
	order    string // configstamp.dev/order
	labels   string // more of its Pods'
	settings string // more annotations
	spec     string // more of its spec
}

// name is what kubectl calls it.
func (m *member) name() string { return strings.ToLower(m.kind) + "/" + m.app }

// room is a namespace that pins, and its workloads.
type room struct {
	t       *testing.T
	space   *harness.Space
	members []member
}

// newRoom makes a namespace in which all pods run, having read the word.
func newRoom(t *testing.T, word string, members ...member) *room {
	t.Helper()
	r := &room{t: t, space: run.Space(t), members: members}
	r.space.WaitServiceAccount()
	// Several edits within ten minutes are what this is made of.
	r.space.SetPolicy("namespace", map[string]string{"pin": "true", "min-interval": "1ms"})
	r.write(word)
	time.Sleep(2 * time.Second) // the namespace's settings are known to all processes
	for i := range members {
		r.space.Create(members[i].manifest())
	}
	r.wantAll(word)
	for i := range members { // one that lacks a pod takes the next word after the others
		r.space.Kubectl("rollout", "status", strings.ToLower(members[i].kind)+"/"+members[i].app, "--timeout=2m")
	}
	return r
}

// write makes a word all that the source says.
func (r *room) write(word string) {
	r.t.Helper()
	if _, err := r.space.TryGet(source); err == nil {
		r.space.Edit(source, "SETTING", word, "setting.txt", word)
		return
	}
	r.space.Set(source, "SETTING", word, "setting.txt", word)
}

// manifest is a workload of one replica, or a canary of three.
func (m *member) manifest() string {
	manner, spec := m.manner, map[string]string{
		"Deployment":  "replicas: 1, strategy: {rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}",
		"StatefulSet": "replicas: 1, serviceName: none",
		"DaemonSet":   "updateStrategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}",
		"Rollout":     "replicas: 3, strategy: {canary: {maxSurge: 1, maxUnavailable: 0, steps: [{setWeight: 33}, {pause: {}}]}}",
	}[m.kind]
	if manner == "" {
		manner = "lenient"
	}
	order := m.order
	if order == "" {
		order = "0"
	}
	version := "apps/v1"
	if m.kind == "Rollout" {
		version = "argoproj.io/v1alpha1"
	}
	reads, volumes := m.reads()
	return fmt.Sprintf(`---
apiVersion: %[12]s
kind: %[1]s
metadata: {name: %[2]s, annotations: {configstamp.dev/order: %[3]q%[10]s}}
spec: {%[4]s%[11]s, selector: {matchLabels: {app: %[2]s}}, template: {metadata: {labels: {app: %[2]s%[9]s}}, spec: {
  terminationGracePeriodSeconds: 1, automountServiceAccountToken: false, enableServiceLinks: false,
  containers: [{name: app, image: '%[5]s', imagePullPolicy: Never, args: [%[6]s, '3000'],
    readinessProbe: {httpGet: {path: /, port: 3000}, periodSeconds: 1, timeoutSeconds: 5, failureThreshold: 20},
    %[7]s}],
  volumes: [%[8]s]}}}
`, m.kind, m.app, order, spec, image, manner, reads, volumes, m.labels, m.settings, m.spec, version)
}

// reads are the fields of a container, and the volumes, by which a member reads the source.
func (m *member) reads() (fields, volumes string) {
	optional := ""
	if m.optional {
		optional = ", optional: true"
	}
	var variables, from, mounts, shows []string
	for _, way := range m.ways {
		switch way {
		case env:
			variables = append(variables, "{name: SETTING, valueFrom: {configMapKeyRef: {name: settings, key: SETTING"+optional+"}}}")
		case envFrom:
			from = append(from, "{prefix: FROM_, configMapRef: {name: settings"+optional+"}}")
		case volume:
			mounts = append(mounts, "{name: volume, mountPath: /volume}")
			shows = append(shows, "{name: volume, configMap: {name: settings"+optional+"}}")
		case subPath:
			mounts = append(mounts, "{name: file, mountPath: /subPath/setting.txt, subPath: setting.txt}")
			shows = append(shows, "{name: file, configMap: {name: settings"+optional+"}}")
		case projected:
			mounts = append(mounts, "{name: projected, mountPath: /projected}")
			shows = append(shows, "{name: projected, projected: {sources: [{configMap: {name: settings"+optional+"}}]}}")
		}
	}
	fields = fmt.Sprintf("env: [%s], envFrom: [%s], volumeMounts: [%s]", strings.Join(variables, ", "), strings.Join(from, ", "), strings.Join(mounts, ", "))
	return fields, strings.Join(shows, ", ")
}

// read is what a container's process has read of the source, by the way.
func (m *member) read(first process.Process) (map[string]string, error) {
	environment, err := first.Environment()
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for _, way := range m.ways {
		switch way {
		case env:
			found[way] = environment["SETTING"]
		case envFrom:
			found[way] = environment["FROM_SETTING"]
		default:
			if found[way], err = first.File(way, "setting.txt"); err != nil {
				return nil, err
			}
		}
	}
	return found, nil
}

// pods are those of a member that are not about to go.
func (r *room) pods(m *member) ([]corev1.Pod, error) {
	list, err := run.Client.CoreV1().Pods(r.space.Namespace).List(r.t.Context(), metav1.ListOptions{LabelSelector: "app=" + m.app})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list.Items, func(p corev1.Pod) bool {
		return p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded
	}), nil
}

// running are the pods of a member, when there are so many, and all their containers run.
func (r *room) running(m *member, count int) ([]corev1.Pod, error) {
	pods, err := r.pods(m)
	if err != nil {
		return nil, err
	}
	if len(pods) != count {
		return nil, fmt.Errorf("%s has %d pods, want %d", m.name(), len(pods), count)
	}
	for i := range pods {
		pod := &pods[i]
		if len(pod.Status.ContainerStatuses) != len(pod.Spec.Containers) {
			return nil, fmt.Errorf("%s has not begun: %s %s", pod.Name, pod.Status.Reason, pod.Status.Message)
		}
		for _, status := range pod.Status.ContainerStatuses {
			if status.State.Running == nil {
				return nil, fmt.Errorf("container %s of %s does not run: %+v", status.Name, pod.Name, status.State)
			}
		}
	}
	return pods, nil
}

// containerID is that of a pod's container, without the runtime's name.
func containerID(pod *corev1.Pod, container string) string {
	for _, status := range pod.Status.ContainerStatuses {
		if status.Name == container {
			_, id, _ := strings.Cut(status.ContainerID, "://")
			return id
		}
	}
	return ""
}

// errUnread tells that a container was not found among the processes, or has ended.
var errUnread = errors.New("it is not among the processes")

// words are what the apps of pods have read: of each pod, by the way.
func (m *member) words(pods []corev1.Pod) (map[string]map[string]string, error) {
	processes, found := process.First(), map[string]map[string]string{}
	for i := range pods {
		first := processes[containerID(&pods[i], "app")]
		if first == "" {
			return nil, fmt.Errorf("%s: %w", pods[i].Name, errUnread)
		}
		words, err := m.read(first)
		if err != nil {
			return nil, fmt.Errorf("%s: %w: %w", pods[i].Name, errUnread, err)
		}
		found[pods[i].Name] = words
	}
	return found, nil
}

// untrue says which of what was read is not the word.
func untrue(read map[string]map[string]string, word string) error {
	var wrong []string
	for _, pod := range slices.Sorted(maps.Keys(read)) {
		for _, way := range slices.Sorted(maps.Keys(read[pod])) {
			if got := read[pod][way]; got != word {
				wrong = append(wrong, fmt.Sprintf("%s has read %q by %s, want %q", pod, got, way, word))
			}
		}
	}
	if len(wrong) > 0 {
		return errors.New(strings.Join(wrong, "\n"))
	}
	return nil
}

// patience is how long a pod may take to run: a container that was killed often waits.
const patience = 2 * time.Minute

// wait calls until there is no error, or too much time has passed.
func (r *room) wait(do func() error) error {
	for deadline := time.Now().Add(patience); ; time.Sleep(200 * time.Millisecond) {
		err := do()
		if err == nil || time.Now().After(deadline) || r.t.Context().Err() != nil {
			return err
		}
	}
}

// settled waits until all pods of a member run, and gives what these have read.
func (r *room) settled(m *member, count int) (read map[string]map[string]string, err error) {
	err = r.wait(func() error {
		pods, err := r.running(m, count)
		if err == nil {
			read, err = m.words(pods)
		}
		return err
	})
	return read, err
}

// wantAll waits until all pods of all members have read a word.
func (r *room) wantAll(word string) {
	r.t.Helper()
	for i := range r.members {
		r.want(&r.members[i], word)
	}
}

// want waits until the one pod of a member has read a word.
func (r *room) want(m *member, word string) {
	r.t.Helper()
	err := r.wait(func() error {
		pods, err := r.running(m, 1)
		if err != nil {
			return err
		}
		read, err := m.words(pods)
		if err != nil {
			return err
		}
		return untrue(read, word)
	})
	if err != nil {
		r.t.Fatalf("%v\n%s", err, r.space.Report())
	}
}

// wantStill checks, at once, that every pod of the held members has read a word.
func (r *room) wantStill(word string, held []member) {
	r.t.Helper()
	for i := range held {
		read, err := r.settled(&held[i], 1)
		if err == nil {
			err = untrue(read, word)
		}
		if err != nil {
			r.t.Errorf("%s: %v", held[i].name(), err)
		}
	}
}
