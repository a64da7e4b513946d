package harness

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	"github.com/configstamp/configstamp/internal/report"
)

// Record watches objects, beginning with those that there are. stop ends the watch and returns every version that was
// seen. A watch that ends by itself fails the test.
func Record(t *testing.T, objects dynamic.ResourceInterface) (stop func() []*unstructured.Unstructured) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	watcher, err := objects.Watch(ctx, metav1.ListOptions{})
	Must(t, err)
	seen, ended := []*unstructured.Unstructured(nil), make(chan struct{})
	go func() {
		defer close(ended)
		for event := range watcher.ResultChan() {
			if object, is := event.Object.(*unstructured.Unstructured); is {
				seen = append(seen, object)
			}
		}
		if ctx.Err() == nil {
			t.Error("a watch has ended, so versions are missing")
		}
	}()
	return func() []*unstructured.Unstructured {
		cancel()
		<-ended
		return seen
	}
}

// ConfigRollout reads the report of a source, such as configmap/web; an error while there is none.
func (s *Space) ConfigRollout(source string) (*report.ConfigRollout, error) {
	object, err := s.TryGet("configrollout/" + strings.Replace(source, "/", "-", 1))
	if err != nil {
		return nil, err
	}
	return ReportIn(object)
}

// ReportIn reads a ConfigRollout.
func ReportIn(object *unstructured.Unstructured) (*report.ConfigRollout, error) {
	var read report.ConfigRollout
	return &read, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &read)
}

// WantReport waits until the report on a source is in a state, of an edit later than that of another report; nil: of any.
func (s *Space) WantReport(source string, state report.State, after *report.ConfigRollout) (is *report.ConfigRollout) {
	s.t.Helper()
	s.Eventually("waiting for the report on "+source+" to be "+string(state), func() (err error) {
		if is, err = s.ConfigRollout(source); err != nil {
			return err
		}
		ready := meta.FindStatusCondition(is.Status.Conditions, report.Ready)
		if ready == nil || ready.Reason != string(state) || after != nil && !after.Status.EditedAt.Before(is.Status.EditedAt) {
			return fmt.Errorf("it says %+v", is.Status)
		}
		return nil
	})
	return is
}
