package main

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/reason"
)

var update = flag.Bool("update", false, "write the tables of docs/reference.md")

// What people look up is made of what is read: docs/reference.md holds what the
// flags and the settings say of themselves.
func TestReferenceSaysWhatTheCodeSays(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "reference.md")
	document, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	webhook, controller := flagsOf(t, "webhook"), flagsOf(t, "controller")
	both := func(flag *pflag.Flag) bool {
		return webhook.Lookup(flag.Name) != nil && controller.Lookup(flag.Name) != nil
	}
	text := string(document)
	for name, table := range map[string]string{
		"settings":    settingsTable(t, webhook, controller),
		"environment": environmentRule(),
		"both":        flagTable(webhook, both),
		"webhook":     flagTable(webhook, func(flag *pflag.Flag) bool { return !both(flag) }),
		"controller":  flagTable(controller, func(flag *pflag.Flag) bool { return !both(flag) }),
		"events":      eventTable(),
		"outcomes":    outcomeTable(),
	} {
		text = between(t, path, text, name, table)
	}
	keep(t, path, string(document), text)
}

// keep writes a file that is made of the code if that is asked for, and else fails if it
// is stale.
func keep(t *testing.T, path, was, is string) {
	t.Helper()
	if was == is {
		return
	}
	if !*update {
		t.Fatalf("%s says something else than the code: make generate writes it", path)
	}
	if err := os.WriteFile(path, []byte(is), 0o644); err != nil {
		t.Fatal(err)
	}
}

// between puts a table between the marks of its name.
func between(t *testing.T, path, text, name, table string) string {
	t.Helper()
	begin, end := "<!-- "+name+", made by: make generate -->\n", "<!-- end of "+name+" -->"
	before, rest, found := strings.Cut(text, begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s lacks the marks of %s", path, name)
	}
	return before + begin + table + end + after
}

func flagsOf(t *testing.T, process string) *pflag.FlagSet {
	t.Helper()
	all := rootCommand().Commands()
	i := slices.IndexFunc(all, func(c *cobra.Command) bool { return c.Name() == process })
	if i < 0 {
		t.Fatalf("there is no command %s", process)
	}
	return all[i].Flags()
}

// flagTable leaves out the flags that are settings: they stand in the table of
// those.
func flagTable(flags *pflag.FlagSet, wanted func(*pflag.Flag) bool) string {
	settings := map[string]bool{}
	for _, setting := range checksum.Settings() {
		settings[setting.Name()] = setting.OnFlag()
	}
	var table strings.Builder
	table.WriteString("| flag | default | meaning |\n|---|---|---|\n")
	flags.VisitAll(func(flag *pflag.Flag) {
		if !wanted(flag) || settings[flag.Name] {
			return
		}
		given := ""
		if flag.DefValue != "" && flag.DefValue != "[]" {
			given = "`" + strings.Trim(flag.DefValue, "[]") + "`"
		}
		name := "--" + flag.Name
		if flag.Shorthand == flag.Name {
			name = "-" + flag.Name
		}
		meaning := strings.TrimSuffix(flag.Usage, " [$"+envName(flag)+"]")
		fmt.Fprintf(&table, "| `%s` | %s | %s |\n", name, given, strings.ReplaceAll(meaning, "|", `\|`))
	})
	return table.String()
}

// settingsTable is what people may write. A setting with a flag has one of its name in
// both processes.
func settingsTable(t *testing.T, processes ...*pflag.FlagSet) string {
	t.Helper()
	var table strings.Builder
	table.WriteString("| annotation | on | value | meaning |\n|---|---|---|---|\n")
	for _, setting := range checksum.Settings() {
		for _, flags := range processes {
			if setting.OnFlag() && flags.Lookup(setting.Name()) == nil {
				t.Errorf("%s is said to have a flag, and there is no --%s", setting.Key(), setting.Name())
			}
		}
		row := fmt.Sprintf("`%s` | %s | %s | %s", setting.Key(), setting.On, setting.Value, setting.Meaning)
		if strings.Count(row, "|") != 3 {
			t.Errorf("%s: a text holds a |, which ends a cell", setting.Key())
		}
		table.WriteString("| " + row + " |\n")
	}
	return table.String()
}

// environmentRule is how a flag's environment variable is named, by an example.
func environmentRule() string {
	return fmt.Sprintf("Each flag has an environment variable: `--key-grace` is `%s`.\n", envName(&pflag.Flag{Name: "key-grace"}))
}

// outcomeTable is what a dry run is answered with, the least restrictive first.
func outcomeTable() string {
	var table strings.Builder
	table.WriteString("| code | sentence |\n|---|---|\n")
	for _, row := range reason.Outcomes() {
		fmt.Fprintf(&table, "| `%s` | %s |\n", row.Code, row.Sentence)
	}
	return table.String()
}

// eventTable is one row for each reason that an event tells of; those of one event
// stand together.
func eventTable() string {
	rows := slices.DeleteFunc(reason.Rows(), func(row reason.Row) bool { return row.Event == "" })
	slices.SortStableFunc(rows, func(a, b reason.Row) int { return cmp.Compare(a.Event, b.Event) })
	var table strings.Builder
	table.WriteString("| event | type | code | meaning |\n|---|---|---|---|\n")
	for _, row := range rows {
		fmt.Fprintf(&table, "| `%s` | %s | `%s` | %s |\n", row.Event, row.Type, row.Code, sentence(row))
	}
	return table.String()
}
