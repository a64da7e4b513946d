package reason

import (
	"regexp"
	"strconv"
	"strings"
)

// speaker begins every text that a program of ours reads.
const speaker = "configstamp: "

// Message is such a text, taken apart. Programs compare everything but Sentence.
type Message struct {
	// Code is that of a reason or of an outcome. Another release may have other codes.
	Code string
	// Source is "<kind>/<name>", "" if the text is about no single source. Key is a key of it, or "".
	Source, Key string
	// Fields are the fields that another webhook would change, in texts of Blocked.
	Fields []string
	// Sentence is for people. It repeats source, key and fields.
	Sentence string
}

// The form: "configstamp: <code>: <sentence>", the sentence beginning with what it is about, if it is
// about a source: "<kind>/<name> ", "<kind>/<name>: " or "<kind>/<name> key "<key>" ".
var (
	form  = regexp.MustCompile(`(?s)^` + speaker + `([a-z]+(?:-[a-z]+)*): (.+)$`)
	about = regexp.MustCompile(`^([a-z]+/[a-z0-9][-.a-z0-9]*):? (?:key ("(?:[^"\\]|\\.)*") )?`)
)

// Parse reads a text. It returns false if the text does not have the form.
func Parse(text string) (Message, bool) {
	found := form.FindStringSubmatch(text)
	if found == nil {
		return Message{}, false
	}
	m := Message{Code: found[1], Sentence: found[2]}
	if found := about.FindStringSubmatch(m.Sentence); found != nil {
		m.Source = found[1]
		m.Key, _ = strconv.Unquote(found[2])
	}
	if fields, _, is := strings.Cut(m.Sentence, ": "); is && m.Code == Blocked.String() {
		m.Fields = strings.Split(fields, ", ")
	}
	return m, true
}

// Among returns the texts with the code of a reason, of all the warnings of an answer.
func (r Reason) Among(warnings []string) (messages []Message) {
	for _, warning := range warnings {
		if m, ok := Parse(warning); ok && m.Code == r.String() {
			messages = append(messages, m)
		}
	}
	return messages
}

// Values are what the sentence of a reason says of one case. They hold no content and no digest.
type Values struct {
	// Source is "<kind>/<name>", "" if the case is about no single source.
	Source string
	// Key is the missing key, for MissingKey; for NotPinned, the uses that are not pinned, if others are.
	Key string
	// Text is the fault; for NotPinned, why; for UndoTaken and ResumeAhead, a time.
	Text string
}

// Sentence returns the sentence of a reason, short enough for an admission warning.
func (r Reason) Sentence(of Values) string {
	text, user, uses, when := r.row().Sentence, "that uses it ", "", " of that revision"
	if of.Source == "" {
		text, user = strings.TrimPrefix(text, "{source}: "), ""
	}
	if of.Key != "" {
		uses = " (" + of.Key + ")"
	}
	if of.Text != "" {
		when = " of " + of.Text
	}
	kind, name, _ := strings.Cut(of.Source, "/")
	return strings.NewReplacer(
		"{source}", of.Source, "{kind}", kind, "{name}", strconv.Quote(name), "{key}", strconv.Quote(of.Key),
		"{fault}", of.Text, "{why}", of.Text, "{time}", of.Text, "{when}", when, "{uses}", uses, "{user}", user,
	).Replace(text)
}

// Warning returns the admission warning of a reason, which Parse reads.
func (r Reason) Warning(of Values) string { return speaker + r.String() + ": " + r.Sentence(of) }
