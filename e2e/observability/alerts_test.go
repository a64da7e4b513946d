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
		for _, problem := range problems(alert.Expr, known) {
			t.Errorf("%s: %s", alert.Alert, problem)
		}
	}
}

func TestEachAlertTellsWhatToDo(t *testing.T) {
	for _, alert := range alerts(t) {
		if !strings.HasPrefix(alert.Alert, "Configstamp") {
			t.Errorf("%s: nobody can tell whose alert this is", alert.Alert)
		}
		if !slices.Contains([]string{"critical", "warning"}, alert.Labels["severity"]) {
			t.Errorf("%s: severity %q, want critical or warning: what needs no person at once is no alert", alert.Alert, alert.Labels["severity"])
		}
		for _, annotation := range []string{"summary", "description", "command"} {
			if alert.Annotations[annotation] == "" {
				t.Errorf("%s has no %s", alert.Alert, annotation)
			}
		}
		want := "https://github.com/configstamp/configstamp/blob/main/docs/troubleshooting.md#" + strings.ToLower(alert.Alert)
		if got := alert.Annotations["runbook_url"]; got != want {
			t.Errorf("%s: runbook_url %s, want %s", alert.Alert, got, want)
		}
	}
}

var heading = regexp.MustCompile(`(?m)^## (Configstamp\w+)\n`)

// TestEachAlertHasARunbook, to which its link leads, and each runbook an alert.
func TestEachAlertHasARunbook(t *testing.T) {
	sections := map[string]bool{}
	for _, found := range heading.FindAllStringSubmatch(read(t, troubleshootingFile), -1) {
		sections[found[1]] = true
	}
	for _, alert := range alerts(t) {
		if !sections[alert.Alert] {
			t.Errorf("%s has no section of %s", alert.Alert, troubleshootingFile)
		}
		delete(sections, alert.Alert)
	}
	for name := range sections {
		t.Errorf("%s in %s is about no alert", name, troubleshootingFile)
	}
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
