package checksum

import "fmt"

// Reason is a stable code for something that a person should know. Log lines,
// metric labels and events use the code; people read the sentence.
type Reason string

// The reasons.
const (
	MissingSource  Reason = "missing-source"
	MissingKey     Reason = "missing-key"
	InvalidName    Reason = "invalid-name"
	ForeignStamps  Reason = "foreign-stamps"
	LostRecord     Reason = "lost-record"
	TooLarge       Reason = "annotations-too-large"
	NotProvenFresh Reason = "not-proven-fresh"

	UnreadableSetting Reason = "unreadable-setting"
	ObserveMode       Reason = "observe-mode"
	NoSetting         Reason = "no-setting"
	NoTemplateSetting Reason = "no-setting-on-template"

	Claimed  Reason = "claimed"
	OtherKey Reason = "other-key"
)

// Finding is one such thing, about one source where it concerns one. It never
// holds content or digests.
type Finding struct {
	Reason Reason
	Source Source
	// Key is the missing key, for MissingKey, or the annotation; for Claimed, ids of
	// digest keys.
	Key string
	// Text is the fault, for UnreadableSetting; the installation, for Claimed.
	Text string
}

// Finding is a fault as people are told of it.
func (f Fault) Finding() Finding { return Finding{Reason: UnreadableSetting, Text: f.Error()} }

// speaker begins our admission warnings.
const speaker = "configstamp: "

// Warning is the finding as an admission warning, which tells who speaks.
func (f Finding) Warning() string {
	if f.Reason == UnreadableSetting && f.Source == (Source{}) {
		return f.String() // it begins with our annotation
	}
	return speaker + f.String()
}

// String is the sentence, short enough for an admission warning.
func (f Finding) String() string {
	switch f.Reason {
	case MissingSource:
		return fmt.Sprintf("%s does not exist: pods cannot start without it; it will be stamped once it exists", f.Source)
	case MissingKey:
		return fmt.Sprintf("%s has no key %q: pods cannot start without it; it will be stamped once it exists", f.Source, f.Key)
	case InvalidName:
		return fmt.Sprintf("%s: no object can have the name %q; the reference is not stamped", f.Source.Kind, f.Source.Name)
	case ForeignStamps:
		return "the configstamp annotations in this request are ignored: the content of a ConfigMap or Secret is not versioned; to undo a change, put the old content back"
	case LostRecord:
		return fmt.Sprintf("%s: the recorded checksum cannot be compared any more; the present content is recorded anew and nothing restarts", f.Source)
	case TooLarge:
		return "checksums left out: with them the annotations would exceed 240 KiB, and the API server takes 256 KiB; remove large annotations"
	case UnreadableSetting:
		if f.Source != (Source{}) {
			return f.Source.String() + ": " + f.Text + "; nothing that uses it restarts until it is fixed"
		}
		return f.Text + "; nothing restarts until it is fixed"
	case NoSetting:
		if f.Key == InjectLabel {
			return f.Key + " is a label, not an annotation; it has no effect here"
		}
		return f.Key + " is not a setting of a workload; it has no effect"
	case NoTemplateSetting:
		return f.Key + " has no effect on a pod template; write it on the workload's own metadata"
	case ObserveMode:
		return "mode is observe: checksums are out of date, and nothing restarts"
	case Claimed:
		return claimText(f.Key, f.Text)
	case OtherKey:
		return "recorded checksums that were made by another installation of configstamp, or under a lost key, are left as they are; the controller records anew what is lost"
	case NotProvenFresh:
		return "the present content of the sources could not be read in time; the controller checks this workload again"
	}
	return string(f.Reason)
}
