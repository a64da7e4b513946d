package pods

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/panics"
	"github.com/configstamp/configstamp/internal/podtruth"
	"github.com/configstamp/configstamp/internal/wire"
	"github.com/configstamp/configstamp/internal/workload"
)

// uid is a metadata.uid: a UUID, or a hash of what is not one.
type uid [16]byte

func uidOf(text []byte) (id uid) {
	digits := strings.ReplaceAll(string(text), "-", "")
	if n, err := hex.Decode(id[:], []byte(digits[:min(len(digits), 2*len(id))])); err != nil || n != len(id) || len(digits) != 2*len(id) {
		sum := sha256.Sum256(text)
		return uid(sum[:len(id)])
	}
	return id
}

// arrived is a pod as it comes through client-go's Reflector. Its group is nil when it is not
// to be kept.
type arrived struct {
	uid                      uid
	namespace, name, version string
	kept
}

// GetObjectKind implements runtime.Object.
func (a *arrived) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject implements runtime.Object; what has arrived never changes.
func (a *arrived) DeepCopyObject() runtime.Object { return a }

// GetObjectMeta implements metav1.ObjectMetaAccessor.
func (a *arrived) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: a.namespace, Name: a.name, ResourceVersion: a.version}
}

// message condenses a pod that came as protobuf.
func (r *Room) message(message []byte) (runtime.Object, error) {
	head := arrived{}
	err := wire.Each(message, func(number int, metadata []byte) error {
		if number != 1 {
			return nil
		}
		return wire.Each(metadata, func(number int, text []byte) error {
			switch number {
			case 1:
				head.name = string(text)
			case 3:
				head.namespace = string(text)
			case 5:
				head.uid = uidOf(text)
			case 6:
				head.version = string(text)
			}
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	if !r.wants(head.namespace) {
		return &head, nil
	}
	return r.tried(&head, func() (*workload.RunningPod, error) { return r.messages.Read(message) }), nil
}

// tried reads a pod and condenses it. One that cannot be read is left out, and the watch of the
// others goes on; so it does after a panic.
func (r *Room) tried(head *arrived, read func() (*workload.RunningPod, error)) (a *arrived) {
	defer func() {
		if value := recover(); value != nil {
			klog.Background().Error(nil, "Reading a pod panicked", "pod", head.namespace+"/"+head.name, "panic", panics.What(value), "stack", panics.Where())
			a = head
		}
	}()
	pod, err := read()
	if err != nil {
		return head
	}
	return r.condense(pod)
}

// text condenses a pod that came as JSON.
func (r *Room) text(text []byte) (runtime.Object, error) {
	pod, err := workload.ReadRunningPod(text)
	if err != nil {
		return nil, err
	}
	head := &arrived{uid: uidOf([]byte(pod.UID)), namespace: pod.Namespace, name: pod.Name, version: pod.ResourceVersion}
	return r.tried(head, func() (*workload.RunningPod, error) { return pod, nil }), nil
}

// condense takes of a pod what is kept.
func (r *Room) condense(pod *workload.RunningPod) *arrived {
	a := &arrived{uid: uidOf([]byte(pod.UID)), namespace: pod.Namespace, name: pod.Name, version: pod.ResourceVersion}
	if pod.Finished || pod.DeletionTimestamp != nil || pod.Owner.Name == "" || !r.wants(pod.Namespace) {
		return a
	}
	g := &group{namespace: pod.Namespace, makers: r.options.Kinds.Makers(pod.Owner, pod.Hash), stamps: pod.Stamps}
	used := podtruth.Read(pod.Spec, pod.Pinned)
	if len(g.makers) == 0 || len(used) == 0 {
		return a
	}
	for i := range g.makers {
		g.makers[i].Namespace = pod.Namespace
	}
	var starts []start
	for _, use := range used {
		container := slices.Index(g.containers, use.Container)
		if container < 0 {
			container = len(g.containers)
			g.containers = append(g.containers, use.Container)
			starts = append(starts, startOf(containerOf(pod, use.Container)))
		}
		source := slices.Index(g.sources, use.Source)
		if source < 0 {
			source = len(g.sources)
			g.sources = append(g.sources, use.Source)
		}
		g.uses = append(g.uses, podtruth.Use{Container: container, Source: source, How: use.How, Pinned: use.Pinned})
	}
	references := checksum.References(pod.Spec)
	for i := range references {
		if of, pinned := pod.Pinned[references[i].Source]; pinned {
			references[i].Source = of
		}
	}
	g.references = checksum.Joined(references)
	a.group, a.created, a.lost = r.groups.intern(g), uint32(max(pod.Created.Unix(), 0)), pod.Lost //nolint:gosec // until 2106
	if more := slices.Clone(starts[copy(a.first[:], starts):]); len(more) > 0 {
		a.more = &more
	}
	return a
}

func containerOf(pod *workload.RunningPod, name string) workload.RunningContainer {
	for _, container := range pod.Containers {
		if container.Name == name {
			return container
		}
	}
	return workload.RunningContainer{Name: name}
}
