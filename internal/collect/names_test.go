package collect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/snapshot"
	"github.com/configstamp/configstamp/internal/snapshot/archive"
)

const (
	snap  = "web-0123456789abcdef0123"
	other = "db.conf-fedcba98765432109876"
)

func isTrue() *bool {
	yes := true
	return &yes
}

func TestNamesAreFoundWhereverTheyStand(t *testing.T) {
	pins := `{"configmap/web":"` + snap + ` startup,live","configmap/db.conf":"` + other + ` live"}`
	meta := metav1.ObjectMeta{Name: "x", UID: "uid-x", OwnerReferences: []metav1.OwnerReference{{UID: "no"}, {UID: "uid-owner", Controller: isTrue()}}}
	annotated := *meta.DeepCopy()
	annotated.Annotations = map[string]string{"configstamp.dev/pins": pins}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Annotations: annotated.Annotations}}
	data, err := json.Marshal(map[string]any{"spec": map[string]any{"template": template}})
	if err != nil {
		t.Fatal(err)
	}
	both := map[checksum.Source]string{{Kind: checksum.ConfigMap, Name: "web"}: snap, {Kind: checksum.ConfigMap, Name: "db.conf"}: other}
	for name, test := range map[string]struct {
		object  runtime.Object
		digests int
		pins    map[checksum.Source]string
	}{
		"a Pod's annotation":     {&corev1.Pod{ObjectMeta: annotated}, 2, both},
		"a Deployment's":         {&appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Template: template}}, 2, both},
		"a revision":             {&appsv1.ControllerRevision{ObjectMeta: meta, Data: runtime.RawExtension{Raw: data}}, 2, both},
		"a volume, nothing else": {&corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{Volumes: []corev1.Volume{{VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: snap}}}}}}}, 1, nil},
		"the last applied": {&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "x", UID: "uid-x", OwnerReferences: meta.OwnerReferences, Annotations: map[string]string{
			"kubectl.kubernetes.io/last-applied-configuration": `{"metadata":{"annotations":{"configstamp.dev/pinned":"{\"configmap/web\":\"` + snap + `\"}"}}}`}}}, 1, map[checksum.Source]string{{Kind: checksum.ConfigMap, Name: "web"}: snap}},
		"no name of ours": {&corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{NodeName: "web-0123456789"}}, 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			written, err := json.Marshal(test.object)
			if err != nil {
				t.Fatal(err)
			}
			u, err := newReferrer(written)
			if err != nil {
				t.Fatal(err)
			}
			if len(u.digests) != test.digests || fmt.Sprint(u.pins) != fmt.Sprint(test.pins) {
				t.Errorf("%v, %v", u.digests, u.pins)
			}
			if test.digests > 0 && (u.name != "x" || u.uid != "uid-x" || u.owner != "uid-owner") {
				t.Errorf("%+v", u)
			}
		})
	}
}

// fixed finds the same names each time, or an error.
type fixed struct {
	found *names
	err   error
	asked int
}

func (f *fixed) in(context.Context, string) (*names, error) {
	f.asked++
	return f.found, f.err
}

// cache holds snapshots and contents.
type cache struct {
	all      []snapshot.Snapshot
	contents map[checksum.Source]*checksum.Content
}

func (s *cache) HasSynced() bool { return true }
func (s *cache) Content(_ string, of checksum.Source) *checksum.Content {
	return s.contents[of]
}
func (s *cache) Snapshot(_, name string) (snapshot.Snapshot, bool) {
	i := slices.IndexFunc(s.all, func(s snapshot.Snapshot) bool { return s.Name == name })
	if i < 0 {
		return snapshot.Snapshot{}, false
	}
	return s.all[i], true
}
func (s *cache) Snapshots(string) []snapshot.Snapshot                      { return s.all }
func (s *cache) SnapshotNamespaces() []string                              { return []string{"shop"} }
func (s *cache) OnSnapshot(func(string, string))                           {}
func (s *cache) OnChange(func(string, checksum.Source, *checksum.Content)) {}
func (s *cache) Ensure(context.Context, string, checksum.Source, string) error {
	return archive.ErrChanged
}
func (s *cache) Delete(context.Context, string, metav1.Preconditions) error {
	return errors.New("deleted")
}
func (s *cache) Get(_ context.Context, name string) (*corev1.ConfigMap, error) {
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, name)
}

type absent struct{ *cache }

func (absent) Content(context.Context, string, string, checksum.Source) (*checksum.Content, error) {
	return nil, nil
}

// TestPeopleAreToldOfWhatIsLost, once, where it matters, and of what nobody can verify.
func TestPeopleAreToldOfWhatIsLost(t *testing.T) {
	key, err := checksum.NewKey(make([]byte, checksum.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	pins := map[checksum.Source]string{{Kind: checksum.ConfigMap, Name: "web"}: snap}
	of := func(kind, name, owner string) *referrer {
		return &referrer{TypeMeta: metav1.TypeMeta{Kind: kind}, name: name, uid: types.UID(name), owner: types.UID(owner), digests: []string{snap[4:]}, pins: pins}
	}
	found := &names{digests: map[string]bool{}}
	for _, u := range []*referrer{
		of("Deployment", "app", ""), of("Deployment", "new", ""), of("ReplicaSet", "app-1", "app"), of("ReplicaSet", "old-1", "old"),
		of("Pod", "app-1-a", "app-1"), of("Pod", "app-1-b", "app-1"), of("Pod", "lone", ""),
	} {
		found.add(u)
	}
	store := &cache{all: []snapshot.Snapshot{{Namespace: "shop", Name: other, Of: checksum.Source{Kind: checksum.ConfigMap, Name: "db.conf"}, Immutable: true}}}
	finder := &fixed{found: found}
	var told []string
	c := newCollector(finder, func(string) configMaps { return store }, Options{
		Store: store, Archive: absent{store}, Ring: func() *checksum.Ring { return checksum.NewRing(key) }, Clock: clock.RealClock{}, Interval: time.Minute,
		Tell: func(about *corev1.ObjectReference, why reason.Reason, text string) {
			told = append(told, about.Kind+"/"+about.Name+" "+why.Event()+": "+text)
		},
	})
	for range 2 {
		if err := c.look(t.Context(), "shop", true); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(told)
	const gone = "SnapshotLost: snapshot " + snap + " of configmap/web was deleted, and configmap/web now holds other content, with which new pods start"
	want := []string{
		"Deployment/app " + gone + "; containers of pods app-1-a, app-1-b may fail to start again: delete these pods, and they are created again",
		"Deployment/new " + gone,
		"Namespace/shop SnapshotsUnverified: " + other + " is labelled as a snapshot of configstamp, but cannot be verified: made with a lost key, in another cluster, or changed; not used, and never deleted by configstamp",
		"Pod/lone " + gone + "; containers of pod lone may fail to start again: delete these pods, and they are created again",
	}
	if !slices.Equal(told, want) {
		t.Errorf("told\n%s\nwant\n%s", strings.Join(told, "\n"), strings.Join(want, "\n"))
	}
	// A list that fails changes nothing; and where there is nothing to collect none is made.
	finder.err, finder.asked = errors.New("cut"), 0
	if err := c.look(t.Context(), "shop", true); err == nil || finder.asked != 1 {
		t.Errorf("%v after %d lists", err, finder.asked)
	}
	if err := c.look(t.Context(), "shop", false); err != nil || finder.asked != 1 {
		t.Errorf("%v after %d lists", err, finder.asked)
	}
}

// TestAnEditIsAUse: what a source held, or holds, may be named by an admission that is under
// way.
func TestAnEditIsAUse(t *testing.T) {
	of := checksum.Source{Kind: checksum.ConfigMap, Name: "web"}
	content := func(value string) *checksum.Content {
		return checksum.ContentOfConfigMap(&corev1.ConfigMap{Data: map[string]string{"a": value}})
	}
	key, err := checksum.NewKey(make([]byte, checksum.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	ring := checksum.NewRing(key)
	store := &cache{contents: map[checksum.Source]*checksum.Content{of: content("now")}}
	for i, value := range []string{"was", "now", "old"} {
		name := ring.SnapshotName("shop", of, content(value))
		store.all = append(store.all, snapshot.Snapshot{Namespace: "shop", Name: name, Of: of, Content: content(value), Immutable: true, UID: types.UID(fmt.Sprint(i))})
	}
	for _, edited := range []bool{false, true} {
		var gone []string
		c := newCollector(&fixed{found: &names{}}, func(string) configMaps { return deleting{store, &gone} }, Options{
			Store: store, Archive: absent{store}, Ring: func() *checksum.Ring { return ring }, Clock: clock.RealClock{}, Interval: time.Minute,
		})
		store.contents[of] = nil
		if err := c.look(t.Context(), "shop", true); err != nil || len(gone) > 0 {
			t.Fatalf("%v, %v gone at once", err, gone)
		}
		store.contents[of] = content("now")
		want := 3
		if edited {
			c.edited("shop", of, content("was"))
			want = 1
		}
		store.contents[of] = content("other")
		if err := c.look(t.Context(), "shop", true); err != nil {
			t.Fatal(err)
		}
		if len(gone) != want || !slices.Contains(gone, store.all[2].Name) {
			t.Errorf("edited %v: %v are deleted, want %d", edited, gone, want)
		}
	}
}

type deleting struct {
	*cache
	gone *[]string
}

func (d deleting) Delete(_ context.Context, name string, _ metav1.Preconditions) error {
	*d.gone = append(*d.gone, name)
	return nil
}
