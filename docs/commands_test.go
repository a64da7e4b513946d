package docs

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// What is taught can be trusted: the next upgrade forgets what an argument has set,
// --reuse-values forgets what is new in the chart, and the logs of a selector are ten
// lines of each container unless --tail says otherwise.
func TestCommandsThatMislead(t *testing.T) {
	selected := regexp.MustCompile(`kubectl [^|\n]*\blogs [^|\n]*(-l|--selector)[ =]`)
	found := 0
	for _, page := range pages(t) {
		if strings.HasSuffix(page, "CHANGELOG.md") {
			continue
		}
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, "--set ") || strings.Contains(line, " --reuse-values") {
				t.Errorf("%s teaches what the next upgrade forgets: %s", page, line)
			}
			if selected.MatchString(line) {
				found++
				if !strings.Contains(line, "--tail=") {
					t.Errorf("%s shows ten lines of each container: %s", page, line)
				}
			}
		}
	}
	if found < 5 {
		t.Errorf("only %d commands that read logs were found", found)
	}
}
