package podtruth

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configstamp/configstamp/e2e/harness"
	"github.com/configstamp/configstamp/e2e/podtruth/process"
	"github.com/configstamp/configstamp/e2e/rollouts/timeline"
)

// room is a namespace with five pods of four containers, and what befalls it.
type room struct {
	t     *testing.T
	space *harness.Space
	dice  *rand.Rand
	words int // so far
	// before is what each source held before its last edit, for taking it back.
	before map[string]map[string]string
	// had is what each source has held, and back tells that it holds something again: then what
	// is old by time may be wrong, as docs/pods-proof.md says.
	had  map[string]bool
	back map[string]bool
	// paused and bad tell what is to end.
	paused, bad bool
	did         []string
	// seen is what was looked at last, and still since when that has been so.
	seen map[string]*truth
	// rest is until when nothing is done.
	rest  time.Time
	held  content
	still time.Time
}

var workloads = []string{"deployment/first", "deployment/web", "statefulset/db", "daemonset/agent"}

// sources are those of a room; the first is the one whose bad edit halts.
var sources = []string{"configmap/env", "secret/env", "configmap/file", "secret/file", "configmap/live", "secret/live"}

func newRoom(t *testing.T, number int) *room {
	r := &room{t: t, space: run.Space(t), dice: rand.New(rand.NewPCG(*seed, uint64(number))), before: map[string]map[string]string{}, had: map[string]bool{}, back: map[string]bool{}}
	r.space.WaitServiceAccount()
	// Several edits within ten minutes are what this is made of.
	r.space.SetPolicy("namespace", map[string]string{"min-interval": "1ms"})
	for _, source := range sources {
		r.set(source, r.fresh(source))
		// Who owns nothing but a key that is removed leaves no trace at all: docs/pods-proof.md, "What remains".
		r.space.Patch(source, `{"metadata":{"annotations":{"example.com/note":""}}}`)
	}
	r.space.Create(manifest("Deployment", "first", "strict", "replicas: 1, strategy: {rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}", "-1") +
		manifest("Deployment", "web", "lenient", "replicas: 2, strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}", "0") +
		manifest("StatefulSet", "db", "lenient", "replicas: 1, serviceName: none", "0") +
		manifest("DaemonSet", "agent", "lenient", "updateStrategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}", "0"))
	r.space.EventuallyIn(time.Minute, "waiting for the pods of a room", func() error {
		for _, name := range workloads {
			object, err := r.space.TryGet(name)
			if err != nil {
				return err
			}
			if !timeline.RolledOut(object) {
				return fmt.Errorf("%s is not rolled out: %v", name, object.Object["status"])
			}
		}
		return nil
	})
	return r
}

// manifest is a workload whose pods read every source, each container in its own way.
func manifest(kind, name, manner, spec, order string) string {
	container := func(number int, name, reads string) string {
		port := strconv.Itoa(3000 + number)
		return "{name: " + name + ", image: " + appImage + ", imagePullPolicy: Never, args: [" + manner + ", '" + port + "'], " + reads +
			", livenessProbe: {httpGet: {path: /, port: " + port + "}, periodSeconds: 3, timeoutSeconds: 5, failureThreshold: 2}}"
	}
	last := container(3, "live", "volumeMounts: [{name: settings, mountPath: /live/settings}, {name: tokens, mountPath: /live/tokens}]")
	if kind != "Deployment" { // files that are refreshed are unknown for long after each edit
		last = container(3, "more", "envFrom: [{prefix: CM_, configMapRef: {name: env}}, {prefix: S_, secretRef: {name: env}}]")
	}
	containers := strings.Join([]string{
		container(0, "env", "env: [{name: SETTING, valueFrom: {configMapKeyRef: {name: env, key: SETTING}}}, {name: SETTING_EXTRA, valueFrom: {configMapKeyRef: {name: env, key: EXTRA, optional: true}}}, "+
			"{name: TOKEN, valueFrom: {secretKeyRef: {name: env, key: TOKEN}}}, {name: TOKEN_EXTRA, valueFrom: {secretKeyRef: {name: env, key: EXTRA, optional: true}}}]"),
		container(1, "from", "envFrom: [{prefix: CM_, configMapRef: {name: env}}, {prefix: S_, secretRef: {name: env}}]"),
		container(2, "sub", "volumeMounts: [{name: file, mountPath: /sub/setting, subPath: setting}, {name: key, mountPath: /sub/token, subPath: token}]"),
		last,
	}, ", ")
	return fmt.Sprintf(`---
apiVersion: apps/v1
kind: %[1]s
metadata: {name: %[2]s, annotations: {configstamp.dev/order: "%[3]s"}}
spec: {%[4]s, selector: {matchLabels: {app: %[2]s}}, template: {metadata: {labels: {app: %[2]s}}, spec: {
  terminationGracePeriodSeconds: 1, automountServiceAccountToken: false, enableServiceLinks: false,
  containers: [%[5]s],
  volumes: [
    {name: file, configMap: {name: file}}, {name: key, secret: {secretName: file}},
    {name: settings, configMap: {name: live}}, {name: tokens, projected: {sources: [{secret: {name: live}}]}}]}}}
`, kind, name, order, spec, containers)
}

// key is the one that every content of a source has.
func key(source string) string {
	switch source {
	case "configmap/env":
		return "SETTING"
	case "secret/env":
		return "TOKEN"
	case "configmap/file", "configmap/live":
		return "setting"
	}
	return "token"
}

// fresh is a content that there never was.
func (r *room) fresh(source string) map[string]string {
	r.words++
	return map[string]string{key(source): fmt.Sprintf("good %d of %s", r.words, r.space.Namespace)}
}

// set makes data the whole content of a source, and leaves its annotations.
func (r *room) set(source string, data map[string]string) {
	r.t.Helper()
	text, err := json.Marshal(data)
	harness.Must(r.t, err)
	r.back[source] = r.had[source+string(text)]
	r.had[source+string(text)] = true
	if r.before[source] == nil {
		pairs := []string{}
		for key, value := range data {
			pairs = append(pairs, key, value)
		}
		r.space.Set(source, pairs...)
		r.before[source] = data
		return
	}
	field := "data"
	patch := map[string]any{}
	now, err := r.content()
	harness.Must(r.t, err)
	r.before[source] = now[source]
	for key := range now[source] {
		patch[key] = nil
	}
	for key, value := range data {
		patch[key] = value
		if strings.HasPrefix(source, "secret/") {
			patch[key] = []byte(value)
		}
	}
	text, err = json.Marshal(map[string]any{field: patch})
	harness.Must(r.t, err)
	r.space.Patch(source, string(text))
}

// act has something happen, by chance, and returns once it has.
func (r *room) act() {
	r.t.Helper()
	source := sources[r.dice.IntN(len(sources))]
	switch n := r.dice.IntN(100); {
	case n >= 95 && *lasts > 3*time.Minute:
		r.note("rest")
		r.rest = time.Now().Add(100 * time.Second)
	case r.bad && n < 25:
		r.note("the bad edit ends")
		r.bad = false
		r.set("configmap/env", r.before["configmap/env"])
	case r.paused && n < 25:
		r.note("the pause ends")
		r.paused = false
		r.space.DropPolicy("namespace", map[string]string{"pause": ""})
	case n < 32:
		r.note("edit " + source)
		r.set(source, r.fresh(source))
	case n < 40: // before anything has rolled, or after
		pause := time.Duration(r.dice.IntN(5000)) * time.Millisecond
		r.note("edit " + source + ", taken back after " + pause.String())
		before, err := r.content()
		harness.Must(r.t, err)
		r.set(source, r.fresh(source))
		time.Sleep(pause)
		r.maybeRestart()
		r.set(source, before[source])
	case n < 46:
		r.note("back to what there was in " + source)
		r.set(source, r.before[source])
	case n < 52:
		r.extraKey(source)
	case n < 58:
		r.note("annotate " + source)
		r.space.Patch(source, fmt.Sprintf(`{"metadata":{"annotations":{"example.com/note":"%d"}}}`, r.dice.IntN(1e6)))
	case n < 62:
		r.story(source)
	case n < 67 && !r.bad:
		r.note("bad edit")
		r.bad = true
		r.set("configmap/env", map[string]string{"SETTING": r.fresh(source)[key(source)] + " bad"})
	case n < 72 && !r.paused:
		r.note("pause")
		r.paused = true
		r.space.SetPolicy("namespace", map[string]string{"pause": "true"})
	default:
		r.maybeRestart()
	}
}

// story is what chance seldom brings about: in a pause, pods start with new content under
// stamps of the old, or with content that is taken back; and what is written then moves times
// that tell of content, or moves none.
func (r *room) story(source string) {
	r.t.Helper()
	now, err := r.content()
	harness.Must(r.t, err)
	before, after := now[source], r.fresh(source)
	r.paused = true
	r.space.SetPolicy("namespace", map[string]string{"pause": "true"})
	start := func() {
		time.Sleep(4 * time.Second) // kubelets have seen the edit
		r.restart(true)
		r.restart(false)
		time.Sleep(time.Duration(3000+r.dice.IntN(6000)) * time.Millisecond)
	}
	switch n := r.dice.IntN(3); n {
	case 0:
		r.note("story: a pause, an edit of " + source + ", a new pod, an annotation")
		r.set(source, after)
		start()
		r.space.Patch(source, fmt.Sprintf(`{"metadata":{"annotations":{"example.com/note":"%d"}}}`, r.dice.IntN(1e6)))
	case 1:
		r.note("story: a pause, a key more in " + source + ", a new pod, and the key is gone")
		delete(before, "EXTRA")
		r.set(source, before)
		time.Sleep(4 * time.Second)
		r.extraKey(source)
		start()
		r.extraKey(source)
	default:
		r.note("story: a pause, an edit of " + source + ", a new pod, and the edit is taken back, and comes again")
		r.set(source, after)
		start()
		r.set(source, before)
		time.Sleep(3 * time.Second)
		r.set(source, after)
	}
}

// extraKey adds a key to a source, or takes it away: which moves no time of managedFields.
func (r *room) extraKey(source string) {
	now, err := r.content()
	harness.Must(r.t, err)
	field := `"data"`
	if _, there := now[source]["EXTRA"]; there {
		r.note("remove a key of " + source)
		r.space.Patch(source, `{`+field+`:{"EXTRA":null}}`)
		return
	}
	r.note("add a key to " + source)
	r.space.Patch(source, `{`+field+`:{"EXTRA":"c2FtZQ=="}}`)
}

// maybeRestart kills a container, has its liveness probe fail, or deletes a pod.
func (r *room) maybeRestart() { r.restart(r.dice.IntN(5) == 0) }

// restart restarts a container, by a signal or by its liveness probe, or deletes a pod.
func (r *room) restart(whole bool) {
	r.t.Helper()
	pods, err := run.Client.CoreV1().Pods(r.space.Namespace).List(r.t.Context(), metav1.ListOptions{})
	harness.Must(r.t, err)
	pods.Items = slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool {
		return p.DeletionTimestamp != nil || len(p.Status.ContainerStatuses) != 4 || p.Status.PodIP == ""
	})
	if len(pods.Items) == 0 {
		return
	}
	pod := &pods.Items[r.dice.IntN(len(pods.Items))]
	number := r.dice.IntN(4)
	switch n := r.dice.IntN(4); {
	case whole:
		r.note("delete " + pod.Name)
		_ = run.Client.CoreV1().Pods(r.space.Namespace).Delete(r.t.Context(), pod.Name, metav1.DeleteOptions{})
	case n < 3:
		_, id, _ := strings.Cut(pod.Status.ContainerStatuses[number].ContainerID, "://")
		if first := process.First()[id]; first != "" {
			r.note("kill " + pod.Status.ContainerStatuses[number].Name + " of " + pod.Name)
			_ = first.Kill()
		}
	default:
		r.note(fmt.Sprintf("the liveness probe of %s fails at port %d", pod.Name, 3000+number))
		client := http.Client{Timeout: time.Second}
		if response, err := client.Get(fmt.Sprintf("http://%s:%d/ill", pod.Status.PodIP, 3000+number)); err == nil {
			_ = response.Body.Close()
		}
	}
}

func (r *room) note(what string) {
	r.did = append(r.did, time.Now().Format("15:04:05.000 ")+what)
}
