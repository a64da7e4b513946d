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
	fault, user := f.Text, ""
	if f.Source != (Source{}) {
		fault, user = f.Source.String()+": "+f.Text, "that uses it "
	}
	return strings.NewReplacer(
		"{source}", f.Source.String(), "{kind}", string(f.Source.Kind), "{name}", strconv.Quote(f.Source.Name),
		"{key}", strconv.Quote(f.Key), "{keys}", f.Key, "{annotation}", f.Key,
		"{fault}", fault, "{user}", user, "{installation}", f.Text,
	).Replace(f.Reason.row().Sentence)
}
