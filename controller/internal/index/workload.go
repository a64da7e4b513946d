package index

import (
	"maps"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

// Workload is all that is kept of one workload.
type Workload struct {
	UID             types.UID
	ResourceVersion string
	Generation      int64
	Inject          string // value of the opt-in label
	Deleting        bool
	Owned           bool // its owner rolls it
	Unprobed        bool // no container of the template has a readiness probe
	Records         checksum.Records
	Settings        map[string]string    // its annotations that are a policy
	Foreign         *checksum.Foreign    // what they say in other products' dialects
	References      []checksum.Reference // joined
	Fault           string               // why the template could not be read
	Sources         []checksum.Source    // what it is found by
	Status          workload.Status      // how far its newest revision is
	Standstill      rollout.Standstill   // while and since it rolls, by what the index has seen
	Best            rollout.Extent       // how far it has been while it rolls
	TemplateOf      *workload.TemplateOf // whose pod template it runs; nil: its own

	own *workload.Status // what it tells itself, where the object that runs its template tells Status; else nil
}

// Borrowed reports whether another object runs its template, and has the pods of it.
func (s *Workload) Borrowed() bool { return s.own != nil }

// Read reads a workload from JSON. See Of for the other parameters.
func Read(kind *workload.Kind, body []byte, dialects []checksum.Dialect, kinds workload.Table) (*Workload, error) {
	object, err := kind.Decode(body)
	if err != nil {
		return nil, err
	}
	status, err := kind.Status(body)
	if err != nil {
		return nil, err
	}
	s := Of(object, status, dialects, kinds)
	s.TemplateOf = kind.TemplateOf(body, kinds)
	return s, nil
}

// Of returns what is kept of a workload. Annotations of other products count in the dialects
// given; kinds decides whether its owner rolls it.
func Of(object *workload.Object, status workload.Status, dialects []checksum.Dialect, kinds workload.Table) *Workload {
	references, err := object.References()
	s := Faulty(object, err)
	s.References, s.Unprobed = checksum.Joined(references), object.Template.Unprobed()
	s.Foreign = object.Foreign(dialects)
	s.Owned = object.RolledByOwner(kinds)
	s.Status = status
	// A baseline that cannot be read counts as none; the webhook drops it.
	s.Records, _ = object.Records()
	return s
}

// Faulty is a workload with its metadata alone. err, if not nil, is why its template cannot
// be read.
func Faulty(object *workload.Object, err error) *Workload {
	s := &Workload{
		UID:             object.UID,
		ResourceVersion: object.ResourceVersion,
		Generation:      object.Generation,
		Inject:          object.Labels[checksum.InjectLabel],
		Deleting:        object.DeletionTimestamp != nil,
		Settings:        checksum.SettingsOf(object.Annotations),
	}
	if err != nil {
		s.Fault = err.Error()
	}
	return s
}

// saysAs reports whether what people and owners say in a workload's metadata, for
// which no generation counts, is what another version of it has.
func (s *Workload) saysAs(other *Workload) bool {
	return s.Inject == other.Inject && s.Deleting == other.Deleting && s.Owned == other.Owned &&
		maps.Equal(s.Settings, other.Settings) && reflect.DeepEqual(s.Foreign, other.Foreign)
}

// compare finds out, from what was known before, since when a workload that rolls has
// made no progress, and since when one that is rolled out is.
func (s *Workload) compare(known *Workload, now time.Time) {
	var before rollout.Standstill
	if known != nil && known.UID == s.UID {
		before = known.Standstill
	}
	s.Standstill.Fills(before, s.Status.Available, now)
	same := known != nil && known.UID == s.UID && known.Generation == s.Generation
	s.Standstill.Relapsed = same && (known.Standstill.Relapsed || known.Status.Phase == workload.RolledOut && s.Status.Phase == workload.Rolling)
	if s.Status.Phase != workload.Rolling {
		if same {
			s.Standstill.Since, s.Best, s.Standstill.Calm = known.Standstill.Since, known.Best, known.Standstill.Calm
			if known.Status.Phase == workload.Rolling {
				s.Standstill.Calm = now
			}
		}
		return
	}
	s.Standstill.Since, s.Best = now, rollout.NoExtent()
	if same && (known.Status.Phase == workload.Rolling || now.Sub(known.Standstill.Calm) < rollout.CalmAfter) {
		s.Standstill.Since, s.Best = known.Standstill.Since, known.Best
	}
	if s.Best.Grows(&s.Status) {
		s.Standstill.Since = now
	}
}

// foundBy is what the index finds a workload by, sorted. The zero Source is for all that
// it names by patterns.
func (s *Workload) foundBy() []checksum.Source {
	switch {
	case s == nil:
		return nil
	case s.Foreign == nil || len(s.Foreign.Names) == 0:
		return s.Sources
	}
	return append([]checksum.Source{{}}, s.Sources...)
}

// runs is the workload whose template it runs, none where that is its own.
func (s *Workload) runs() workload.Ref {
	if s == nil || s.TemplateOf == nil {
		return workload.Ref{}
	}
	return s.TemplateOf.Ref
}
