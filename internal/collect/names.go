package collect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/cache/follow"
	"github.com/configstamp/configstamp/internal/workload"
)

// referrer is an object whose text may name snapshots.
type referrer struct {
	metav1.TypeMeta
	name       string
	uid, owner types.UID
	// digests are the ends of all names in it that may be those of snapshots.
	digests []string
	// pins are the snapshots that its annotations name, by source.
	pins map[checksum.Source]string
}

// digit is how many hexadecimal digits end a snapshot's name.
const digits = 20

// nameEnd finds the digest of a snapshot's name wherever it stands, in any encoding of the
// text around it: what stands after it does not matter, and more is found than is named.
var nameEnd = regexp.MustCompile(`-([0-9a-f]{20})`)

// pin finds an entry of our annotations, be it escaped as JSON within JSON.
var pin = regexp.MustCompile(`"(configmap/[a-z0-9.-]{1,253})\\*"\s*:\s*\\*"([a-z0-9.-]{1,253})`)

// read scans the text of an object. Nothing of it is kept but names.
func (u *referrer) read(text []byte) {
	seen := map[string]bool{}
	for _, found := range nameEnd.FindAllSubmatch(text, -1) {
		if end := string(found[1]); !seen[end] {
			seen[end] = true
			u.digests = append(u.digests, end)
		}
	}
	if len(u.digests) == 0 {
		return
	}
	for _, found := range pin.FindAllSubmatch(text, -1) {
		of, err := checksum.ParseSource(string(found[1]))
		if name := string(found[2]); err == nil && checksum.SnapshotFits(of, name) {
			if u.pins == nil {
				u.pins = map[checksum.Source]string{}
			}
			u.pins[of] = name
		}
	}
}

// newReferrer reads an object from JSON.
func newReferrer(data []byte) (*referrer, error) {
	u := &referrer{}
	if u.read(data); len(u.digests) == 0 {
		return u, nil
	}
	var head metav1.PartialObjectMetadata
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, errors.New("reading the metadata of an object: it does not have the form of one")
	}
	u.name, u.uid = head.Name, head.UID
	if owner := metav1.GetControllerOf(&head); owner != nil {
		u.owner = owner.UID
	}
	return u, nil
}

// kind is one whose objects are read. template tells that Pods start from it today.
type kind struct {
	schema.GroupVersionResource
	name     string
	template bool
}

// kinds are in the order in which a name wanders: a workload, its revisions, its Pods. So one
// that leaves the first while it is read is found in the next.
func kinds() []kind {
	var workloads, revisions []kind
	for _, row := range workload.Builtin() {
		is := kind{appsv1.SchemeGroupVersion.WithResource(row.RevisionResource()), row.Revisions, false}
		if row.Revisions != "" && !slices.Contains(revisions, is) {
			revisions = append(revisions, is)
		}
	}
	for _, row := range workload.Builtin() {
		is := kind{row.GroupVersionResource(), row.Name, true}
		isRevision := slices.ContainsFunc(revisions, func(one kind) bool { return one.name == row.Name })
		if row.Group != "" && !isRevision { // nothing is pinned by a ReplicationController
			workloads = append(workloads, is)
		}
	}
	pods := kind{corev1.SchemeGroupVersion.WithResource("pods"), "Pod", false}
	return append(append(workloads, revisions...), pods)
}

// lists read names by LIST.
type lists map[schema.GroupVersion]rest.Interface

func newLists(config *rest.Config) (lists, error) {
	clients := lists{}
	for _, kind := range kinds() {
		gv := kind.GroupVersion()
		if clients[gv] != nil {
			continue
		}
		client, err := follow.Dynamic(config, gv)
		if err != nil {
			return nil, fmt.Errorf("making the client that lists %s: %w", kind.Resource, err)
		}
		clients[gv] = client
	}
	return clients, nil
}

const (
	pageOf     = 250
	pageWithin = 30 * time.Second
)

// names are the objects of a namespace that may name snapshots.
type names struct {
	referrers []*referrer
	digests   map[string]bool
}

func (n *names) named(name string) bool { return n.digests[name[max(len(name)-digits, 0):]] }

// in reads all names in a namespace, by consistent reads, or none.
func (l lists) in(ctx context.Context, namespace string) (*names, error) {
	found := &names{digests: map[string]bool{}}
	for _, kind := range kinds() {
		for next := ""; ; {
			page, err := l.page(ctx, namespace, kind, next)
			if err != nil {
				return nil, fmt.Errorf("listing %s in namespace %q: %w", kind.Resource, namespace, err)
			}
			for _, item := range page.Items {
				u, err := newReferrer(item.Raw)
				if err != nil {
					return nil, fmt.Errorf("listing %s in namespace %q: %w", kind.Resource, namespace, err)
				}
				if len(u.digests) > 0 {
					u.APIVersion, u.Kind = kind.GroupVersion().String(), kind.name
					found.add(u)
				}
			}
			if next = page.Continue; next == "" {
				break
			}
		}
	}
	return found, nil
}

func (n *names) add(u *referrer) {
	n.referrers = append(n.referrers, u)
	for _, end := range u.digests {
		n.digests[end] = true
	}
}

func (l lists) page(ctx context.Context, namespace string, kind kind, next string) (*metav1.List, error) {
	ctx, cancel := context.WithTimeout(ctx, pageWithin)
	defer cancel()
	request := l[kind.GroupVersion()].Get().Namespace(namespace).Resource(kind.Resource).Param("limit", strconv.Itoa(pageOf))
	if next != "" {
		request = request.Param("continue", next)
	}
	return follow.List(ctx, request)
}
