package checksum

import (
	"github.com/configstamp/configstamp/internal/reason"
)

// Finding is one thing that users should know, about one source if it concerns one. It never holds content or digests.
type Finding struct {
	Reason reason.Reason
	Source Source
	// Key is the missing key, for MissingKey; for NotPinned, the uses that are not pinned, if others are.
	Key string
	// Text is the fault, for UnreadableSetting; for NotPinned, why; for UndoTaken, when the snapshot was made.
	Text string
}

// Finding returns the fault as a finding.
func (f Fault) Finding() Finding { return Finding{Reason: reason.UnreadableSetting, Text: f.Error()} }

// Unreadable returns findings for the settings of an object that cannot be read.
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

// Unreferenced returns the sources that the workload's setting only names without a glob, and that nothing else of the
// workload names.
func (p *Policy) Unreferenced(references []Reference) (found []Finding) {
	if origin, _ := p.OriginOf("only"); origin != OfWorkload {
		return nil
	}
	named := make(map[Source]bool, len(references))
	for i := range references {
		named[references[i].Source] = true
	}
	for _, pattern := range p.Only {
		source := Source(pattern)
		if !isGlob(pattern.Name) && !Among(p.Also, source) && !p.foreign.Named(source) && !named[source] {
			found = append(found, Finding{Reason: reason.Unreferenced, Source: source})
		}
	}
	return found
}

// Unnameable returns the sources that the workload references, or that annotations of another product name, and that
// cannot exist in its namespace: no object can have the name, or the name includes another namespace.
func (p *Policy) Unnameable(references []Reference) (found []Finding) {
	warned := map[Source]bool{}
	add := func(source Source) {
		if p.Serves(source.Kind) && !source.Nameable() && !warned[source] {
			warned[source] = true
			found = append(found, Finding{Reason: reason.InvalidName, Source: source})
		}
	}
	for i := range references {
		add(references[i].Source)
	}
	if p.foreign != nil {
		for _, name := range p.foreign.Names {
			if name.expression == nil {
				add(Source{name.Kind, name.plain})
			}
		}
	}
	return found
}

// ByEvent returns one text for each kind of event, by the reason of its first finding.
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
