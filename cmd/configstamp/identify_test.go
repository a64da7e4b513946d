package main

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configstamp/configstamp/internal/cache/follow"
	"github.com/configstamp/configstamp/internal/cache/follow/fakeapi"
)

// An event about a source has its uid, and is written without it where that cannot be read.
func TestIdentify(t *testing.T) {
	server := fakeapi.New(t)
	server.Put("configmaps", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "settings", UID: "u-1"}})
	core, err := follow.Typed(server.Config(), corev1.SchemeGroupVersion, corev1.AddToScheme)
	if err != nil {
		t.Fatal(err)
	}
	var wrote []string
	write := identify(core, func(_ context.Context, event *eventsv1.Event) error {
		wrote = append(wrote, event.Regarding.Name+"="+string(event.Regarding.UID))
		return nil
	})
	for _, about := range []corev1.ObjectReference{
		{Kind: "ConfigMap", Namespace: "shop", Name: "settings"}, {Kind: "Secret", Namespace: "shop", Name: "gone"}, {Kind: "Deployment", Namespace: "shop", Name: "web", UID: "u-2"},
	} {
		if err := write(t.Context(), &eventsv1.Event{Regarding: about}); err != nil {
			t.Error(err)
		}
	}
	if want := []string{"settings=u-1", "gone=", "web=u-2"}; len(wrote) != 3 || wrote[0] != want[0] || wrote[1] != want[1] || wrote[2] != want[2] {
		t.Errorf("wrote %q, want %q", wrote, want)
	}
}
