package controller

import (
	"maps"
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

// subject is all that is kept of one workload.
type subject struct {
	uid             types.UID
	resourceVersion string
	generation      int64
	inject          string // value of the opt-in label
	deleting        bool
	owned           bool // its owner rolls it
	records         checksum.Records
	settings        map[string]string    // its annotations that are a policy
	foreign         *checksum.Foreign    // what they say in other products' dialects
	references      []checksum.Reference // joined
	fault           string               // why the template could not be read
	sources         []checksum.Source    // what it is found by
	status          workload.Status      // how far its newest revision is
	still           time.Time            // since when it rolls without any progress
	best            rollout.Extent       // how far it has been while it rolls
	calm            time.Time            // since when it rolls no more, as far as we have seen
	relapsed        bool                 // it was rolled out before, at this generation, and fell back
}

// read reads a workload as the API server writes it.
func (o *Options) read(kind *workload.Kind, body []byte) (*workload.Object, *subject, error) {
	object, err := kind.Decode(body)
	if err != nil {
		return nil, nil, err
	}
	status, err := kind.Status(body)
	if err != nil {
		return nil, nil, err
	}
	references, err := object.References()
	s := faulty(object, err)
	s.references = checksum.Joined(references)
	s.foreign = object.Foreign(o.Dialects)
	s.owned = object.RolledByOwner(o.Kinds)
	if s.status = status; s.status.Phase == workload.Suspended { // it is not told apart yet
		s.status.Phase, s.status.Missing, s.status.Waits = workload.Unreported, 0, "it is paused"
	}
	// A baseline that cannot be read counts as none; the webhook drops it.
	s.records, _ = object.Records()
	return object, s, nil
}

// faulty is a workload of which no more is known than its metadata, because of
// err; nil is no fault.
func faulty(object *workload.Object, err error) *subject {
	s := &subject{
		uid:             object.UID,
		resourceVersion: object.ResourceVersion,
		generation:      object.Generation,
		inject:          object.Labels[checksum.InjectLabel],
		deleting:        object.DeletionTimestamp != nil,
		settings:        checksum.SettingsOf(object.Annotations),
	}
	if err != nil {
		s.fault = err.Error()
	}
	return s
}

// received carries a subject through client-go's Reflector.
type received struct {
	workload.Ref
	*subject
}

// GetObjectKind implements runtime.Object.
func (r received) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject implements runtime.Object; what was received never changes.
func (r received) DeepCopyObject() runtime.Object { return r }

// GetObjectMeta implements metav1.ObjectMetaAccessor.
func (r received) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: r.Namespace, Name: r.Name, ResourceVersion: r.resourceVersion}
}

// saysAs reports whether what people and owners say in a workload's metadata, for
// which no generation counts, is what another version of it has.
func (s *subject) saysAs(other *subject) bool {
	return s.inject == other.inject && s.deleting == other.deleting && s.owned == other.owned &&
		maps.Equal(s.settings, other.settings) && reflect.DeepEqual(s.foreign, other.foreign)
}

// compare finds out, from what was known before, since when a workload that rolls has
// made no progress, and since when one that is rolled out is.
func (s *subject) compare(known *subject, now time.Time) {
	same := known != nil && known.uid == s.uid && known.generation == s.generation
	s.relapsed = same && (known.relapsed || known.status.Phase == workload.RolledOut && s.status.Phase == workload.Rolling)
	if s.status.Phase != workload.Rolling {
		if same {
			s.still, s.best, s.calm = known.still, known.best, known.calm
			if known.status.Phase == workload.Rolling {
				s.calm = now
			}
		}
		return
	}
	s.still, s.best = now, rollout.NoExtent()
	if same && (known.status.Phase == workload.Rolling || now.Sub(known.calm) < rollout.CalmAfter) {
		s.still, s.best = known.still, known.best
	}
	if s.best.Grows(&s.status) {
		s.still = now
	}
}
