package hostile

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/configstamp/configstamp/e2e/harness"
)

// neighbour is the tenant that is to be left alone: some Deployments of one ConfigMap.
type neighbour struct {
	space *harness.Space
	round int

	mu        sync.Mutex
	templates map[string]template // by the name of the Deployment
}

// template is what a pod template carries, and since when.
type template struct {
	stamp string
	since time.Time
}

const (
	source   = "configmap/settings"
	odd      = "configmap/odd" // which nothing uses; its annotation cannot be read
	every    = 10 * time.Second
	patience = 3 * time.Minute // until an edit has not rolled
)

// deployments use the source in four ways; the last is pinned.
const deployments = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web-%[1]d, annotations: {configstamp.dev/pin: "%[2]t"}}
spec:
  selector: {matchLabels: {app: web-%[1]d}}
  template:
    metadata: {labels: {app: web-%[1]d}}
    spec: {containers: [{name: app, image: none, %[3]s}]%[4]s}
`

// settle makes the neighbour, whose rollouts need no long watch and may come often.
func settle(t *testing.T) *neighbour {
	t.Helper()
	s := run.Space(t)
	s.WaitServiceAccount()
	s.SetPolicy("namespace", map[string]string{"soak": "1s", "min-interval": "1ms"})
	n := &neighbour{space: s, templates: map[string]template{}}
	s.Set(source, "MESSAGE", "message 0")
	s.Set(odd, "MESSAGE", "")
	informer := informers.NewSharedInformerFactoryWithOptions(run.Client, time.Second, informers.WithNamespace(s.Namespace)).Apps().V1().Deployments().Informer()
	fleet := &fleet{t.Context(), run.Client.CoreV1().Pods(s.Namespace), run.Client.AppsV1().Deployments(s.Namespace)}
	for _, hear := range []func(*appsv1.Deployment){n.seen, fleet.roll} {
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { hear(object.(*appsv1.Deployment)) },
			UpdateFunc: func(_, object any) { hear(object.(*appsv1.Deployment)) },
		})
		harness.Must(t, err)
	}
	go informer.Run(t.Context().Done())
	const envFrom, mounted = "envFrom: [{configMapRef: {name: settings}}]", "volumeMounts: [{name: v, mountPath: /v}]"
	for i, uses := range [][2]string{
		{envFrom, ""},
		{mounted, ", volumes: [{name: v, configMap: {name: settings}}]"},
		{mounted, ", volumes: [{name: v, projected: {sources: [{configMap: {name: settings}}]}}]"},
		{envFrom, ""},
	} {
		s.Create(fmt.Sprintf(deployments, i, i == 3, uses[0], uses[1]))
	}
	n.wait(t, time.Now())
	return n
}

// seen notes since when a template carries its stamp.
func (n *neighbour) seen(deployment *appsv1.Deployment) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if stamp := deployment.Spec.Template.Annotations[harness.StampKey(source)]; stamp != n.templates[deployment.Name].stamp {
		n.templates[deployment.Name] = template{stamp, time.Now()}
	}
}

// phase edits the ConfigMap again and again.
func (n *neighbour) phase(t *testing.T, processes []*harness.Process) (f figures) {
	t.Helper()
	var before figures
	before.costs(t, processes)
	for end := time.Now().Add(*length); time.Now().Before(end) && !t.Failed(); {
		next := time.After(every)
		n.edit(t, &f)
		<-next
	}
	f.costs(t, processes)
	for name, seconds := range before.seconds {
		f.seconds[name] -= seconds
	}
	return f
}

// edit edits the ConfigMap, and has something else to be warned of by an event.
func (n *neighbour) edit(t *testing.T, f *figures) {
	t.Helper()
	n.round++
	n.space.Warnings() // of the edit before
	began := time.Now()
	n.space.Edit(source, "MESSAGE", fmt.Sprint("message ", n.round))
	edited := time.Now()
	if len(n.space.Warnings()) == 0 {
		f.unwarned++
	} else {
		f.warned = append(f.warned, edited.Sub(began))
	}
	unreadable := fmt.Sprintf("[%d", n.round)
	n.space.SetPolicy(odd, map[string]string{"ignore-keys": unreadable})
	asked := time.Now()
	told := make(chan time.Duration, 1)
	ctx, stop := context.WithCancel(t.Context())
	go func() { told <- n.hear(ctx, asked, unreadable) }()
	f.rolled = append(f.rolled, n.wait(t, edited))
	select {
	case took := <-told:
		f.told = append(f.told, took)
	case <-time.After(every):
		f.untold++
	}
	stop()
}

// hear waits for an event that quotes text.
func (n *neighbour) hear(ctx context.Context, since time.Time, text string) time.Duration {
	for ctx.Err() == nil {
		list, err := run.Client.EventsV1().Events(n.space.Namespace).List(ctx, metav1.ListOptions{FieldSelector: "type=Warning"})
		if err == nil {
			for _, event := range list.Items {
				if strings.Contains(event.Note, text) {
					return time.Since(since)
				}
			}
		}
		time.Sleep(200 * time.Millisecond)
	}
	return 0
}

// wait waits until all templates carry the present content, and says how long the last
// took from since on.
func (n *neighbour) wait(t *testing.T, since time.Time) time.Duration {
	t.Helper()
	want := n.space.Digest(source)
	var last time.Time
	behind := func() (names []string) {
		n.mu.Lock()
		defer n.mu.Unlock()
		for i := range 4 {
			name := fmt.Sprintf("web-%d", i)
			if now := n.templates[name]; now.stamp != want {
				names = append(names, name)
			} else if now.since.After(last) {
				last = now.since
			}
		}
		return names
	}
	for deadline := since.Add(patience); ; time.Sleep(20 * time.Millisecond) {
		names := behind()
		if len(names) == 0 {
			return last.Sub(since)
		}
		if time.Now().After(deadline) || t.Failed() {
			t.Errorf("after %s %s carry no stamp of the edit\n%s", time.Since(since).Round(time.Second), strings.Join(names, ", "), n.space.Report())
			return time.Since(since)
		}
	}
}
