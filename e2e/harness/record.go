package harness

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
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
