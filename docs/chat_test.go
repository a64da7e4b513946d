package docs

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// What the page has people filter by are reasons that there are.
func TestChat_NamesReasonsThatThereAre(t *testing.T) {
	page, err := os.ReadFile("chat.md")
	if err != nil {
		t.Fatal(err)
	}
	reference, err := os.ReadFile("reference.md")
	if err != nil {
		t.Fatal(err)
	}
	_, events, _ := strings.Cut(string(page), "## Events")
	reasons := regexp.MustCompile(`\b(Change|Checksum|Pause|Pods|Policy|Readmission|Rollout|Source)[A-Z]\w+`).FindAllString(events, -1)
	for _, reason := range reasons {
		if !strings.Contains(string(reference), "| `"+reason+"` |") {
			t.Errorf("no event has the reason %s", reason)
		}
	}
	if len(reasons) < 15 {
		t.Errorf("only %d reasons were found", len(reasons))
	}
}
