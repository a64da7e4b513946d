package inspect

import (
	"slices"
	"strings"

	"github.com/configstamp/configstamp/internal/seen"
)

// speaker begins every warning of the webhook.
const speaker = "configstamp: "

// outcomeIn finds the outcome among the warnings of an answer: a line "configstamp: <code>:
// <sentence>". Of several (two installations, or a webhook that was called twice) the most
// restrictive counts. None is Unknown.
func outcomeIn(warnings []string) seen.Outcome {
	codes := seen.Codes()
	found, rank := seen.Outcome{}, -1
	var beside []string
	for _, warning := range warnings {
		code, sentence, ok := parseOutcome(warning)
		if at := slices.Index(codes, code); ok && at > rank {
			found, rank = seen.Outcome{Code: code, Sentence: sentence}, at
		}
		if text, ours := strings.CutPrefix(warning, speaker); ours && !ok {
			beside = append(beside, text)
		}
	}
	found.Beside = beside
	if rank < 0 {
		return seen.UnknownBecause("the webhook said nothing: it is stopped, or cannot be reached, or does not look at this namespace (kubectl configstamp doctor looks for it)").By(seen.Silence)
	}
	return found
}

// parseOutcome reads one warning. (Package checksum is to have this.)
func parseOutcome(warning string) (code seen.Code, sentence string, ok bool) {
	text, ours := strings.CutPrefix(warning, speaker)
	word, sentence, cut := strings.Cut(text, ": ")
	code = seen.Code(word)
	return code, sentence, ours && cut && slices.Contains(seen.Codes(), code)
}
