package checksum

import (
	"github.com/configstamp/configstamp/internal/reason"
)

// Finding is one thing that a person should know, about one source where it concerns
// one. It never holds content or digests.
type Finding struct {
	Reason reason.Reason
	Source Source
	// Key is the missing key, for MissingKey; for NotPinned,
	// the uses, where others are pinned.
	Key string
	// Text is the fault, for UnreadableSetting; for NotPinned,
	// why; for UndoTaken, of when.
	Text string
}

// Finding is a fault as people are told of it.
func (f Fault) Finding() Finding { return Finding{Reason: reason.UnreadableSetting, Text: f.Error()} }

// Unreadable tells which settings of an object cannot be read.
func Unreadable(at Origin, settings map[string]string) (found []Finding) {
	if len(settings) == 0 {
		return nil
	}
	policy := DefaultPolicy().With(Level{at, settings})
	for _, fault := range policy.Faults {
		found = append(found, fault.Finding())
	}
	if policy.PinFault != nil {
		found = append(found, Finding{Reason: reason.PinUnreadable, Text: policy.PinFault.Error()})
	}
	return found
}

// OnlyUnreferenced tells of sources that the setting only names, without a glob, and that
// nothing else of the workload names.
func OnlyUnreferenced(annotations map[string]string, references []Reference, foreign *Foreign) (found []Finding) {
	only, err := parseSourcePatterns(annotations[OnlyAnnotation])
	if err != nil {
		return nil // which is told of as a Fault
	}
	also, _ := parseSources(annotations[alsoSetting])
	named := make(map[Source]bool, len(references))
	for i := range references {
		named[references[i].Source] = true
	}
	for _, pattern := range only {
		source := Source(pattern)
		if !isGlob(pattern.Name) && !Among(also, source) && !foreign.Named(source) && !named[source] {
			found = append(found, Finding{Reason: reason.Unreferenced, Source: source})
		}
	}
	return found
}

// ByEvent is one text for each event that tells of findings, by the reason of the first.
func ByEvent(found []Finding) map[reason.Reason]string {
	texts, first := map[reason.Reason]string{}, map[string]reason.Reason{}
	for _, finding := range found {
		why, more := first[finding.Reason.Event()]
		if more {
			texts[why] += ". " + finding.String()
		} else {
			first[finding.Reason.Event()] = finding.Reason
			texts[finding.Reason] = finding.String()
		}
	}
	return texts
}

// Warning returns the finding as an admission warning.
func (f Finding) Warning() string { return f.Reason.Warning(f.values()) }

// String returns the sentence, short enough for an admission warning.
func (f Finding) String() string { return f.Reason.Sentence(f.values()) }

func (f Finding) values() reason.Values {
	of := reason.Values{Key: f.Key, Text: f.Text}
	if f.Source != (Source{}) {
		of.Source = f.Source.String()
	}
	return of
}

// Warnings returns the admission warnings of findings.
func Warnings(findings []Finding) (warnings []string) {
	for _, finding := range findings {
		warnings = append(warnings, finding.Warning())
	}
	return warnings
}
