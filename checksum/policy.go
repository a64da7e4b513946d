package checksum

import (
	"bytes"
	"slices"
	"strconv"
	"time"

	"github.com/configstamp/configstamp/internal/reason"
)

// Policy is what may restart a workload, and when: the settings of the workload over those of its Namespace over the
// flags. DefaultPolicy is the one without settings.
type Policy struct {
	// Uses are the uses that restart (restart-on).
	Uses []Use
	// Only, unless empty, names the sources that count, Ignore those that do not.
	Only, Ignore []SourcePattern
	// Also are sources that the pod template need not name, sorted.
	Also []Source
	// Ignored are sources that the platform creates; they count only if Also names them.
	Ignored []Source
	// SecretProviderClasses reports whether sources of this kind count.
	SecretProviderClasses bool
	// ConfigMapsAlone reports that no Secret counts, and that none can be read.
	ConfigMapsAlone bool
	// Observe reports that nothing rolls.
	Observe bool
	// RestartUnstamped reports that a workload without stamps rolls.
	RestartUnstamped bool
	// Pause holds rollouts.
	Pause Pause
	// Windows are when rollouts may happen; empty: at any time.
	Windows []Window
	// MinInterval is the least time between the newest revision becoming current
	// and the next roll; 0: none.
	MinInterval time.Duration
	// Order is the place within a change.
	Order Order
	// Soak is how long a rollout has to stay well, in place of the flags.
	Soak Soak
	// Pin reports that Pods keep the content that their template was stamped with.
	Pin bool
	// Return reports that a workload that pins goes back by itself to its former content when it has failed.
	Return bool
	// Faults are the settings that cannot be read; a workload that has one is held.
	Faults []Fault
	// PinFault is the fault of the setting pin, which holds nothing; nil: none.
	PinFault *Fault

	origins [settingCount]Origin // "": not set
	foreign *Foreign
	named   []Source
	zones   *zones
}

// Pause holds rollouts: for good, or until a time.
type Pause struct {
	On    bool
	Until time.Time // zero: for good
}

// holds reports whether the pause holds rollouts at some time.
func (p Pause) holds(now time.Time) bool {
	return p.On && (p.Until.IsZero() || now.Before(p.Until))
}

// Order is a place within a change: lower ones roll first, and workloads without one last.
type Order struct {
	Place int
	Given bool
}

// Soak is how long a rollout has to stay healthy, if a setting gives it.
type Soak struct {
	For   time.Duration
	Given bool
}

// Origin is where a setting stands.
type Origin string

// The origins, the nearest first.
const (
	OfWorkload  Origin = "workload"
	OfNamespace Origin = "Namespace"
	OfFlag      Origin = "flag"
	OfSource    Origin = "source"
)

// Level is the annotations of one origin; of flags, as if they were annotations.
type Level struct {
	Origin      Origin
	Annotations map[string]string
}

// DefaultPolicy counts what containers read, at their start or while they run.
func DefaultPolicy(ignored ...Source) Policy {
	return Policy{Uses: []Use{Startup, Live}, Ignored: ignored, zones: &zones{known: map[string]*time.Location{}}}
}

// With is the policy under the settings of some levels, the nearest first. Of
// each setting the nearest counts, and alone has to be readable.
func (p Policy) With(levels ...Level) Policy {
	for i := range settings {
		setting := &settings[i]
		if setting.set == nil {
			continue // it belongs to sources
		}
		for _, level := range levels {
			text, written := level.Annotations[setting.Key()]
			if !written {
				continue
			}
			if err := setting.set(&p, text); err != nil {
				fault := Fault{Origin: level.Origin, Key: setting.Key(), Value: text, Want: err.Error()}
				if setting.key == PinAnnotation {
					p.Pin, p.PinFault = false, &fault
				} else {
					p.Faults = append(slices.Clone(p.Faults), fault)
				}
			} else {
				p.origins[i] = level.Origin
			}
			break
		}
	}
	return p
}

// Translated returns the policy with the annotations of other products (nil: none) beneath the workload's own.
// existing lists the names of the sources of a kind in its namespace.
func (p Policy) Translated(foreign *Foreign, existing func(Kind) []string) Policy {
	if foreign == nil {
		return p
	}
	p.foreign = foreign
	p.Faults = append(slices.Clone(p.Faults), foreign.Faults...)
	if origin, _ := p.OriginOf("min-interval"); foreign.MinInterval > 0 && origin != OfWorkload {
		p.MinInterval = foreign.MinInterval
	}
	p.named = nil
	for _, kind := range Kinds() {
		if !slices.ContainsFunc(foreign.Names, func(n NamePattern) bool { return n.Kind == kind }) {
			continue
		}
		for _, name := range existing(kind) {
			if source := (Source{kind, name}); foreign.Named(source) {
				p.named = append(p.named, source)
			}
		}
	}
	return p
}

// OriginOf returns where a setting stands; false: nowhere, so the default counts.
func (p *Policy) OriginOf(setting string) (Origin, bool) {
	for i := range settings {
		if settings[i].Name() == setting {
			return p.origins[i], p.origins[i] != ""
		}
	}
	return "", false
}

// Serves reports whether sources of a kind count at all. The content of others is not known.
func (p *Policy) Serves(kind Kind) bool {
	switch kind {
	case Secret:
		return !p.ConfigMapsAlone
	case SecretProviderClass:
		return p.SecretProviderClasses
	default:
		return true
	}
}

// counts reports whether a source counts, as far as the workload's side decides;
// ifMarked, that it does if it carries Reloader's mark. In the order of the design:
// what is ignored, what alone counts, what counts also.
func (p *Policy) counts(source Source) (counts, ifMarked bool) {
	switch {
	case !p.Serves(source.Kind), anyMatches(p.Ignore, source):
		return false, false
	case Among(p.Also, source):
		return true, false
	case len(p.Only) > 0 && !anyMatches(p.Only, source), slices.Contains(p.Ignored, source):
		return false, false
	}
	return p.foreign.counts(source)
}

// Hold is why a workload may not roll at some moment.
type Hold struct {
	// Reason is Paused, OutsideWindow or TooSoon: its code is the name of the setting.
	Reason reason.Reason
	// Until is when to check again; zero: when the setting changes.
	Until time.Time
}

// HoldAt returns what holds a rollout at a moment. current is when the newest revision became current, zero if that is
// not known. Of several reasons it returns the one that lasts longest.
func (p *Policy) HoldAt(now, current time.Time) (hold Hold, held bool) {
	if p.Pause.holds(now) {
		if p.Pause.Until.IsZero() {
			return Hold{Reason: reason.Paused}, true
		}
		hold, held = Hold{reason.Paused, p.Pause.Until}, true
	}
	if open, next := anyOpen(p.Windows, now); !open && next.After(hold.Until) {
		hold, held = Hold{reason.OutsideWindow, next}, true
	}
	if due := current.Add(p.MinInterval); p.MinInterval > 0 && !current.IsZero() && now.Before(due) && due.After(hold.Until) {
		hold, held = Hold{reason.TooSoon, due}, true
	}
	return hold, held
}

// SourcePolicy is the settings in a source's own annotations; nil: none.
type SourcePolicy struct {
	// Ignore reports that the source never counts, for any workload.
	Ignore bool
	// IgnoreKeys are globs of keys that never count, sorted.
	IgnoreKeys []string
	// Resume releases a halted change whose failed rollout began before it, unless it is Ahead.
	Resume time.Time
	// Ahead reports that Resume was more than a minute in the future when it was written. Then it counts as
	// unreadable for as long as it stands, and holds nothing.
	Ahead bool
	// Unreloaded and Marked are Reloader's "ignore" and "match": they count for
	// workloads that are written for Reloader.
	Unreloaded, Marked bool
	// Unpinned reports that no workload pins the source.
	Unpinned bool
	// Faults are the settings that cannot be read; workloads that use the source
	// are held.
	Faults []Fault
	// PinFault is the fault of its setting pin, which holds nothing; nil: none.
	PinFault *Fault
}

// IsOfSource reports whether SourcePolicyOf may read an annotation of this key. Others need
// not be there: they may be as long as a source's whole content.
func IsOfSource(key []byte) bool {
	return bytes.HasPrefix(key, []byte(settingPrefix)) || bytes.HasPrefix(key, []byte(reloaderDomain))
}

// SourcePolicyOf reads the annotations of a ConfigMap or Secret.
func SourcePolicyOf(annotations map[string]string) *SourcePolicy {
	if len(annotations) == 0 {
		return nil
	}
	var p SourcePolicy
	found := false
	for i := range settings {
		setting := &settings[i]
		if setting.setOnSource == nil {
			continue
		}
		text, written := annotations[setting.Key()]
		if !written {
			continue
		}
		found = true
		if err := setting.setOnSource(&p, text); err != nil {
			fault := Fault{Origin: OfSource, Key: setting.Key(), Value: text, Want: err.Error()}
			if setting.key == PinAnnotation {
				p.PinFault = &fault
			} else {
				p.Faults = append(p.Faults, fault)
			}
		}
	}
	p.Unreloaded, p.Marked = foreignMarks(annotations)
	if !found && !p.Unreloaded && !p.Marked {
		return nil
	}
	return &p
}

// Equal reports whether two have the same settings.
func (p *SourcePolicy) Equal(other *SourcePolicy) bool {
	if p == nil || other == nil {
		return p == other
	}
	return p.Ignore == other.Ignore && p.Resume.Equal(other.Resume) && p.Ahead == other.Ahead && p.Unreloaded == other.Unreloaded && p.Marked == other.Marked &&
		p.Unpinned == other.Unpinned && (p.PinFault == nil) == (other.PinFault == nil) && (p.PinFault == nil || *p.PinFault == *other.PinFault) &&
		slices.Equal(p.IgnoreKeys, other.IgnoreKeys) && slices.Equal(p.Faults, other.Faults)
}

// resumeAhead is how far ahead of its writing a time to resume may be: clocks differ.
const resumeAhead = time.Minute

// ResumeWritten takes when the time to resume was written, before anybody else sees
// the policy.
func (p *SourcePolicy) ResumeWritten(at time.Time) {
	p.Ahead = p.Resume.After(at.Add(resumeAhead))
}

// Recall takes the policy that was known until now, nil when none was: a time to resume
// that could not be read then cannot be read while it stands.
func (p *SourcePolicy) Recall(before *SourcePolicy) {
	if before != nil && before.Ahead && before.Resume.Equal(p.Resume) {
		p.Ahead = true
	}
}

// Resumes is the time before which failures are forgiven, zero when there is none.
func (p *SourcePolicy) Resumes() time.Time {
	if p == nil || p.Ahead {
		return time.Time{}
	}
	return p.Resume
}

// faults returns the settings of a source that cannot be read, and that hold the workloads that use it.
func (p *SourcePolicy) faults(of Source) []Finding {
	var found []Finding
	for _, fault := range p.Faults {
		finding := fault.Finding()
		finding.Source = of
		found = append(found, finding)
	}
	return found
}

// Findings returns the settings of a source that cannot be read, including one that holds nothing.
func (p *SourcePolicy) Findings(of Source) []Finding {
	if p == nil {
		return nil
	}
	found := p.faults(of)
	if p.Ahead {
		found = append(found, Finding{Reason: reason.ResumeAhead, Source: of, Text: strconv.Quote(p.Resume.Format(time.RFC3339))})
	}
	if p.PinFault != nil {
		found = append(found, Finding{Reason: reason.PinUnreadable, Source: of, Text: p.PinFault.Error()})
	}
	return found
}

// SettingsOf picks the settings out of an object's annotations; nil when there
// are none.
func SettingsOf(annotations map[string]string) map[string]string {
	var found map[string]string
	for i := range settings {
		key := settings[i].Key()
		if text, written := annotations[key]; written {
			if found == nil {
				found = map[string]string{}
			}
			found[key] = text
		}
	}
	return found
}
