package reason

import (
	"regexp"
	"strconv"
	"strings"
)

// speaker begins our admission warnings, and every other text that a program of ours reads.
const speaker = "configstamp: "

// Message is a text that a program reads, taken apart.
type Message struct {
	// Code is that of a reason or of an outcome. Another release may have other codes.
	Code string
	// Sentence is for people.
	Sentence string
}

var form = regexp.MustCompile(`^` + speaker + `([a-z]+(?:-[a-z]+)*): (.+)$`)

// Parse reads "configstamp: <code>: <sentence>". It returns false for any other text.
func Parse(text string) (Message, bool) {
	found := form.FindStringSubmatch(text)
	if found == nil {
		return Message{}, false
	}
	return Message{Code: found[1], Sentence: found[2]}, true
}

// Values are what the sentence of a reason says of one case. They hold no content and no digest.
type Values struct {
	// Source is "<kind>/<name>", "" if the case is about no single source.
	Source string
	// Key is the missing key, for MissingKey; for NotPinned, the uses, where others are pinned.
	Key string
	// Text is the fault, for UnreadableSetting; for NotPinned, why; for UndoTaken, the time of the content.
	Text string
}

// Sentence returns the sentence of a reason, short enough for an admission warning.
func (r Reason) Sentence(of Values) string {
	fault, user, pinned, when := of.Text, "", "", " of that revision"
	if of.Source != "" {
		fault, user, pinned = of.Source+": "+of.Text, "that uses it ", ": "+of.Source
	}
	if of.Key != "" {
		pinned += " (" + of.Key + ")"
	}
	if of.Text != "" {
		when = " of " + of.Text
	}
	kind, name, _ := strings.Cut(of.Source, "/")
	return strings.NewReplacer(
		"{pinned}", pinned, "{fault text}", of.Text, "{of when}", when,
		"{source}", of.Source, "{kind}", kind, "{name}", strconv.Quote(name),
		"{key}", strconv.Quote(of.Key), "{value}", of.Text, "{fault}", fault, "{user}", user,
	).Replace(r.row().Sentence)
}

// Warning returns the admission warning of a reason.
func (r Reason) Warning(of Values) string { return speaker + r.Sentence(of) }
