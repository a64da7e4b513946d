package observability

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

type rule struct {
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

func alerts(t *testing.T) (all []rule) {
	t.Helper()
	var file struct {
		Groups []struct {
			Name  string `yaml:"name"`
			Rules []rule `yaml:"rules"`
		} `yaml:"groups"`
	}
	if err := yaml.Unmarshal([]byte(read(t, alertsFile)), &file); err != nil {
		t.Fatalf("%s: %v", alertsFile, err)
	}
	for _, group := range file.Groups {
		all = append(all, group.Rules...)
	}
	if len(all) == 0 {
		t.Fatalf("%s holds no alert", alertsFile)
	}
	return all
}

func TestAlertsAskForWhatThereIs(t *testing.T) {
	known := knownMetrics(t)
	for _, alert := range alerts(t) {
		for _, problem := range problems(alert.Expr, known, map[string]bool{}) {
			t.Errorf("%s: %s", alert.Alert, problem)
		}
	}
}

func TestEachAlertTellsWhatToDo(t *testing.T) {
	for _, alert := range alerts(t) {
		if !strings.HasPrefix(alert.Alert, "Configstamp") {
			t.Errorf("%s: nobody can tell whose alert this is", alert.Alert)
		}
		if !slices.Contains([]string{"critical", "warning", "info"}, alert.Labels["severity"]) {
			t.Errorf("%s: severity %q, want critical, warning or info", alert.Alert, alert.Labels["severity"])
		}
		for _, annotation := range []string{"summary", "description"} {
			if text := alert.Annotations[annotation]; !strings.HasSuffix(text, ".") {
				t.Errorf("%s: %s %q, want a sentence", alert.Alert, annotation, text)
			}
		}
		want := "https://github.com/configstamp/configstamp/blob/main/docs/runbooks.md#" + strings.ToLower(alert.Alert)
		if got := alert.Annotations["runbook_url"]; got != want {
			t.Errorf("%s: runbook_url %s, want %s", alert.Alert, got, want)
		}
	}
}

var heading = regexp.MustCompile(`(?m)^## (Configstamp\w+)\n`)

// TestEachAlertHasARunbook, and each runbook an alert, with what it means, how to
// look and how to fix it. What the alert says to begin with stands there. Who has no plugin
// of kubectl finds another command.
func TestEachAlertHasARunbook(t *testing.T) {
	text := read(t, runbooksFile)
	sections := map[string]string{}
	places := heading.FindAllStringSubmatchIndex(text, -1)
	for i, place := range places {
		end := len(text)
		if i+1 < len(places) {
			end = places[i+1][0]
		}
		sections[text[place[2]:place[3]]] = text[place[1]:end]
	}
	for _, alert := range alerts(t) {
		section, explained := sections[alert.Alert]
		if !explained {
			t.Errorf("%s has no section of %s", alert.Alert, runbooksFile)
		}
		for _, part := range []string{"**What it means.**", "**What users notice.**", "**How to look.**", "**How to fix.**"} {
			if explained && !strings.Contains(section, part) {
				t.Errorf("%s in %s lacks %s", alert.Alert, runbooksFile, part)
			}
		}
		first := alert.Annotations["command"]
		if explained && (!strings.HasPrefix(first, "kubectl ") || !strings.Contains(commandsOf(section), first)) {
			t.Errorf("%s in %s does not have the command that the alert names: %q", alert.Alert, runbooksFile, first)
		}
		if explained && strings.Count(commandsOf(section), "kubectl ") == strings.Count(commandsOf(section), "kubectl configstamp ") {
			t.Errorf("%s in %s names no command for who has no plugin", alert.Alert, runbooksFile)
		}
		delete(sections, alert.Alert)
	}
	for name := range sections {
		t.Errorf("%s in %s is about no alert", name, runbooksFile)
	}
}

// commandsOf are the blocks of commands in a section.
func commandsOf(section string) string {
	var blocks []string
	for i, part := range strings.Split(section, "```\n") {
		if i%2 == 1 {
			blocks = append(blocks, part)
		}
	}
	return strings.Join(blocks, "\n")
}

// TestEachAlertIsTested: promtool runs the cases, but does not miss any.
func TestEachAlertIsTested(t *testing.T) {
	text := read(t, rulesTestFile)
	for _, alert := range alerts(t) {
		if !strings.Contains(text, `alertname="`+alert.Alert+`"`) {
			t.Errorf("%s: no case of %s has it fire", alert.Alert, rulesTestFile)
		}
	}
}
