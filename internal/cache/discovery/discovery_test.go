package discovery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// answers are what the API server says of each group and version.
type answers map[string]any

func (a answers) ServerResourcesForGroupVersionWithContext(_ context.Context, groupVersion string) (*metav1.APIResourceList, error) {
	switch answer := a[groupVersion].(type) {
	case error:
		return nil, answer
	case []metav1.APIResource:
		return &metav1.APIResourceList{APIResources: answer}, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{}, groupVersion)
}

func serves(names ...string) (list []metav1.APIResource) {
	for _, name := range names {
		list = append(list, metav1.APIResource{Name: name, Kind: "Kind of " + name, Namespaced: name != "nodes"})
	}
	return list
}

// keeper notes what is looked after.
type keeper struct {
	mu    sync.Mutex
	now   []string
	count int
}

func (k *keeper) note(kind string, begins bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if begins {
		k.now, k.count = append(k.now, kind), k.count+1
	} else {
		k.now = slices.DeleteFunc(k.now, func(other string) bool { return other == kind })
	}
}

func (k *keeper) resource(group, name string, begun chan<- struct{}) Resource {
	return Resource{GroupVersionResource: schema.GroupVersionResource{Group: group, Version: "v1", Resource: name}, Watch: func(ctx context.Context, kind string) error {
		k.note(kind, true)
		begun <- struct{}{}
		<-ctx.Done()
		k.note(kind, false)
		return nil
	}}
}

// look asks for each group once.
func look(t *testing.T, r *Resources) {
	for _, g := range r.groups {
		g.look(t.Context())
	}
}

func TestWhatIsServedIsLookedAfter(t *testing.T) {
	discovery := answers{}
	var k keeper
	begun := make(chan struct{}, 10)
	r := New(discovery, k.resource("a", "apples", begun), k.resource("a", "pears", begun), k.resource("b", "nodes", begun))
	for i, step := range []struct {
		about string
		a, b  any
		now   []string
		begin int
	}{
		{"nothing is served", nil, nil, nil, 0},
		{"a definition is installed", serves("others", "apples"), nil, []string{"Kind of apples"}, 1},
		{"nothing has changed", serves("apples"), nil, []string{"Kind of apples"}, 0},
		{"another of the group", serves("pears", "apples"), nil, []string{"Kind of apples", "Kind of pears"}, 1},
		{"the API server does not tell", errors.New("busy"), nil, []string{"Kind of apples", "Kind of pears"}, 0},
		{"one that is not namespaced", serves("apples", "pears"), serves("nodes"), []string{"Kind of apples", "Kind of pears"}, 0},
		{"one is taken away", serves("pears"), nil, []string{"Kind of pears"}, 0},
		{"the whole group is", nil, nil, nil, 0},
		{"it is installed again", serves("apples"), nil, []string{"Kind of apples"}, 1},
	} {
		discovery["a/v1"], discovery["b/v1"] = step.a, step.b
		before := k.count
		look(t, r)
		for range step.begin {
			<-begun
		}
		k.mu.Lock()
		slices.Sort(k.now)
		if !slices.Equal(k.now, step.now) || k.count != before+step.begin {
			t.Errorf("step %d, %s: %v are looked after, want %v; %d begun, want %d", i, step.about, k.now, step.now, k.count-before, step.begin)
		}
		k.mu.Unlock()
	}
}

func TestWhatIsNotReadYet(t *testing.T) {
	discovery := answers{"a/v1": errors.New("busy"), "b/v1": serves("nodes")}
	full := false
	begun := make(chan struct{}, 10)
	var k keeper
	apples := k.resource("a", "apples", begun)
	apples.Filled = func() bool { return full }
	r := New(discovery, apples, k.resource("a", "pears", begun), k.resource("b", "nodes", begun), k.resource("c", "plums", begun))
	want := func(about string, names ...string) {
		t.Helper()
		if got := r.Unread(); !slices.Equal(got, names) {
			t.Errorf("%s: %q are unread, want %q", about, got, names)
		}
	}
	want("nobody has looked", "apples.a", "pears.a", "nodes.b", "plums.c")
	look(t, r)
	want("the API server does not tell of a group", "apples.a", "pears.a")
	discovery["a/v1"] = serves("apples")
	look(t, r)
	want("one is served", "apples.a")
	full = true
	want("and filled")
	discovery["a/v1"] = errors.New("busy")
	look(t, r)
	want("the API server does not tell any more")
}

// hanging does not answer for one group.
type hanging struct {
	answers
	group string
	end   <-chan struct{}
}

func (h hanging) ServerResourcesForGroupVersionWithContext(ctx context.Context, groupVersion string) (*metav1.APIResourceList, error) {
	if groupVersion == h.group {
		<-h.end
	}
	return h.answers.ServerResourcesForGroupVersionWithContext(ctx, groupVersion)
}

func TestAGroupThatDoesNotAnswerDelaysNoOther(t *testing.T) {
	var k keeper
	begun := make(chan struct{}, 2)
	ctx, stop := context.WithCancel(t.Context())
	r := New(hanging{answers{"b/v1": serves("pears")}, "a/v1", ctx.Done()}, k.resource("a", "apples", begun), k.resource("b", "pears", begun))
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.Run(ctx)
	}()
	select {
	case <-begun:
	case <-time.After(10 * time.Second):
		t.Error("the other is not watched")
	}
	stop()
	<-done
}

func TestTheEndOfRunIsTheEndOfAll(t *testing.T) {
	var k keeper
	begun := make(chan struct{}, 1)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		New(answers{"a/v1": serves("apples")}, k.resource("a", "apples", begun),
			Resource{GroupVersionResource: schema.GroupVersionResource{Group: "a", Version: "v1", Resource: "pears"}, Watch: func(context.Context, string) error { return fmt.Errorf("never served") }}).Run(ctx)
	}()
	<-begun
	stop()
	<-done
	if len(k.now) > 0 {
		t.Errorf("%v are looked after", k.now)
	}
}
