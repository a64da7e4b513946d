package checksum

import (
	"strconv"
	"strings"
)

// Finding is one thing that a person should know, about one source where it concerns
// one. It never holds content or digests.
type Finding struct {
	Reason Reason
	Source Source
	// Key is the missing key, for MissingKey; of a near
	// miss, what is written, such as "label configstamp.dev/injcet"; for NotPinned, the uses,
	// where others are pinned.
	Key string
	// Text is the fault, for UnreadableSetting; of a near
	// miss, what to do; for NotPinned, why; for UndoTaken, of when.
	Text string
	// Place is where a near miss stands.
	Place Origin
}

// Finding is a fault as people are told of it.
func (f Fault) Finding() Finding { return Finding{Reason: UnreadableSetting, Text: f.Error()} }

// ByEvent is one text for each event that tells of findings, by the reason of the first.
func ByEvent(found []Finding) map[Reason]string {
	texts, first := map[Reason]string{}, map[string]Reason{}
	for _, finding := range found {
		why, more := first[finding.Reason.Event()]
		switch {
		case !more:
			first[finding.Reason.Event()] = finding.Reason
			texts[finding.Reason] = finding.String()
		case strings.HasSuffix(texts[why], "?"):
			texts[why] += " " + finding.String()
		default:
			texts[why] += ". " + finding.String()
		}
	}
	return texts
}

// speaker begins our admission warnings.
const speaker = "configstamp: "

// Warning is the finding as an admission warning, which tells who speaks.
func (f Finding) Warning() string { return speaker + f.String() }

// String is the sentence, short enough for an admission warning.
func (f Finding) String() string {
	fault, user := f.Text, ""
	if f.Source != (Source{}) {
		fault, user = f.Source.String()+": "+f.Text, "that uses it "
	}
	pinned, when := "", " of that revision"
	if f.Source != (Source{}) {
		pinned = ": " + f.Source.String()
	}
	if f.Key != "" {
		pinned += " (" + f.Key + ")"
	}
	if f.Text != "" {
		when = " of " + f.Text
	}
	return strings.NewReplacer(
		"{pinned}", pinned, "{of when and what}", f.Text, "{fault text}", f.Text, "{of when}", when,
		"{source}", f.Source.String(), "{kind}", string(f.Source.Kind), "{name}", strconv.Quote(f.Source.Name),
		"{key}", strconv.Quote(f.Key), "{keys}", f.Key, "{label or annotation}", f.Key, "{place}", f.Place.place(),
		"{hint}", f.Text, "{where}", f.Text, "{value}", f.Text,
		"{fault}", fault, "{user}", user, "{installation}", f.Text,
	).Replace(f.Reason.row().Sentence)
}
