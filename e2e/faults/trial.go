package faults

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/configstamp/configstamp/e2e/faults/judge"
	"github.com/configstamp/configstamp/e2e/harness"
)

// Court holds what is needed for trials: a run, and the Witness of it.
type Court struct {
	Run     *harness.Run
	Witness *Witness
	// Outages are the spans of time in which a webhook may not have answered.
	Outages *Outages

	supervisor supervisor
}

// Outages are spans of time. A scenario notes one around whatever can keep the
// API server from hearing a webhook.
type Outages struct {
	mu    sync.Mutex
	spans []*outage
}

type outage struct{ from, to time.Time }

// slack is how long a request that an outage met may go on after it, or may have
// begun before: a webhook's timeout and some.
const slack = 4 * time.Second

// Begin notes an outage that lasts until end is called.
func (o *Outages) Begin() (end func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	one := &outage{from: time.Now()}
	o.spans = append(o.spans, one)
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		one.to = time.Now()
	}
}

// Meets reports whether any outage met a span of time.
func (o *Outages) Meets(from, to time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, one := range o.spans {
		if !to.Before(one.from.Add(-100*time.Millisecond)) && (one.to.IsZero() || from.Before(one.to.Add(slack))) {
			return true
		}
	}
	return false
}

// Trial is a namespace in which something is tried.
type Trial struct {
	*User
	Court *Court
}

// Open makes a namespace; value is that of the label that opts it in.
func (c *Court) Open(ctx context.Context, name, value string) (*Trial, error) {
	c.Witness.Remember(name)
	_, err := c.Run.Client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{harness.InjectLabel: value},
	}}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("making a namespace: %w", err)
	}
	return &Trial{User: NewUser(c.Run.Dynamic, name), Court: c}, nil
}

var notInNames = regexp.MustCompile("[^a-z0-9]+")

// Trial opens one for a scenario, which deletes it at its end.
func (c *Court) Trial(t testing.TB) *Trial {
	t.Helper()
	name := notInNames.ReplaceAllString(strings.ToLower(strings.TrimPrefix(t.Name(), "Test")), "-")
	trial, err := c.Open(t.Context(), strings.Trim(name[:min(len(name), 40)], "-")+"-"+rand.String(5), "enabled")
	harness.Must(t, err)
	t.Cleanup(func() {
		if os.Getenv(harness.EnvKeep) == "" {
			_ = trial.Close(context.Background())
		}
	})
	return trial
}

// Close takes away what a trial has left, but for its empty namespace: deleting
// hundreds of those would keep the cluster busy.
func (t *Trial) Close(ctx context.Context) error {
	for _, kind := range []string{"deployment", "statefulset", "daemonset", "cronjob", "replicaset", "pod", "configmap", "secret"} {
		policy, now := metav1.DeletePropagationBackground, int64(0)
		if err := t.to(kind).DeleteCollection(ctx, metav1.DeleteOptions{PropagationPolicy: &policy, GracePeriodSeconds: &now}, metav1.ListOptions{}); err != nil {
			return fmt.Errorf("clearing %s: %w", t.Namespace, err)
		}
	}
	t.Court.Witness.Forget(t.Namespace)
	return nil
}

// History is what the Witness saw so far.
func (t *Trial) History() (*judge.History, string, error) {
	events, said, err := t.Court.Witness.Events(t.Namespace)
	if err != nil {
		return nil, "", err
	}
	keys, err := t.Court.Run.Keys()
	if err != nil {
		return nil, "", err
	}
	return &judge.History{
		Namespace: t.Namespace, Events: events, Writes: t.Writes(t.Court.Outages.Meets), Keys: keys,
		Notes: t.Court.Witness.Notes(t.Namespace), Removed: t.Removed(), Unserved: t.Court.Outages.Meets,
	}, said, nil
}

// Converge waits until everything carries the truth, and returns what does not
// when the time is over.
func (t *Trial) Converge(ctx context.Context, within time.Duration) ([]judge.Violation, error) {
	deadline := time.Now().Add(within)
	for {
		history, _, err := t.History()
		if err != nil {
			return nil, err
		}
		untrue := history.Untrue()
		if len(untrue) == 0 {
			if err := t.Court.Witness.CatchUp(ctx, t.Namespace); err != nil {
				return nil, err
			}
			if history, _, err = t.History(); err != nil {
				return nil, err
			}
			untrue = history.Untrue()
		}
		if len(untrue) == 0 || time.Now().After(deadline) {
			return untrue, nil
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// Verdict is what the judge finds in a trial's history so far.
func (t *Trial) Verdict(ctx context.Context) ([]judge.Violation, error) {
	if err := t.Court.Witness.CatchUp(ctx, t.Namespace); err != nil {
		return nil, err
	}
	history, said, err := t.History()
	if err != nil {
		return nil, err
	}
	found := append(history.Judge(), judge.Leaks("events of "+t.Namespace, []byte(said), judge.Marker)...)
	for _, event := range history.Events {
		if kind := event.Object.GetKind(); kind == "ConfigMap" || kind == "Secret" || kind == "Namespace" {
			continue
		}
		text, err := event.Object.MarshalJSON()
		if err != nil {
			return nil, fmt.Errorf("reading an event: %w", err)
		}
		found = append(found, judge.Leaks(judge.Name(event.Object), text, judge.Marker)...)
	}
	if err := t.Denied(); err != nil {
		found = append(found, judge.Violation{Invariant: "I5", Object: t.Namespace, Text: "refused: " + err.Error()})
	}
	return found, nil
}

// Judge is the end of a scenario: everything carries the truth within some time,
// nothing happens after that, and no invariant was violated.
func (t *Trial) Judge(test testing.TB, within time.Duration) {
	test.Helper()
	ctx := context.Background()
	began := time.Now()
	untrue, err := t.Converge(ctx, within)
	harness.Must(test, err)
	if len(untrue) > 0 {
		test.Errorf("after %s: %v", within, untrue)
	} else {
		test.Logf("true %.1fs after the fault", time.Since(began).Seconds())
	}
	time.Sleep(2 * time.Second) // this is when a second rollout would come
	found, err := t.Verdict(ctx)
	harness.Must(test, err)
	for _, violation := range found {
		test.Error(violation)
	}
	if test.Failed() {
		test.Log(t.Report())
	}
}

// Report is what a person wants to see of a failure.
func (t *Trial) Report() string {
	history, _, err := t.History()
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("=== namespace %s\n%s%s", t.Namespace, history, t.Court.Run.Product.Logs(40, t.Namespace, `"level":"ERROR"`, "Leading"))
}

// Spoken is what the processes have said and count, for the search for content.
func (c *Court) Spoken() map[string][]byte {
	spoken := map[string][]byte{}
	for _, process := range c.Run.Product.All() {
		text, err := os.ReadFile(filepath.Join(c.Run.Dir, process.Name+".log"))
		if err == nil {
			spoken["log of "+process.Name] = text
		}
		spoken["metrics of "+process.Name] = []byte(process.MetricsText())
	}
	return spoken
}
