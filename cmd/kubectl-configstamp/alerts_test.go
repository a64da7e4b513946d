package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"
)

// What an alert has people begin with is a command of ours, with its flags and arguments.
func TestTheCommandsOfAlerts(t *testing.T) {
	text, err := os.ReadFile("../../deploy/chart/files/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Rules []struct {
				Alert       string
				Annotations struct{ Command string }
			}
		}
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	ours := 0
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			line, is := strings.CutPrefix(rule.Annotations.Command, "kubectl configstamp ")
			if !is {
				continue
			}
			ours++
			if err := parses(line); err != nil {
				t.Errorf("%s: %q: %v", rule.Alert, rule.Annotations.Command, err)
			}
		}
	}
	if ours == 0 {
		t.Error("no alert names a command of ours")
	}
}

// parses reports whether the plugin knows a command and its flags, and takes its arguments.
func parses(line string) error {
	root := rootCommand(newPlugin(genericiooptions.NewTestIOStreamsDiscard(), atThree))
	of, rest, err := root.Find(strings.Fields(line))
	if err != nil {
		return err
	}
	if err := of.ParseFlags(rest); err != nil || slices.Contains(rest, "--help") {
		return err
	}
	return of.ValidateArgs(of.Flags().Args())
}
