package main

import (
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/configstamp/configstamp/checksum"
)

var update = flag.Bool("update", false, "write the tables of docs/reference.md and docs/metrics.md")

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
		"settings":   settingsTable(),
		"both":       flagTable(webhook, both),
		"webhook":    flagTable(webhook, func(flag *pflag.Flag) bool { return !both(flag) }),
		"controller": flagTable(controller, func(flag *pflag.Flag) bool { return !both(flag) }),
		"check":      flagTable(flagsOf(t, "check"), func(*pflag.Flag) bool { return true }),
	} {
		text = between(t, path, text, name, table)
	}
	if text == string(document) {
		return
	}
	if !*update {
		t.Fatalf("%s says something else than the code: run this test with -update", path)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// between puts a table between the marks of its name.
func between(t *testing.T, path, text, name, table string) string {
	t.Helper()
	begin, end := "<!-- "+name+", made by: go test ./cmd/configstamp -run TestReference -update -->\n", "<!-- end of "+name+" -->"
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
	table.WriteString("| flag | environment variable | default | meaning |\n|---|---|---|---|\n")
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
		fmt.Fprintf(&table, "| `%s` | `%s` | %s | %s |\n", name, envName(flag), given, strings.ReplaceAll(meaning, "|", `\|`))
	})
	return table.String()
}

func settingsTable() string {
	var table strings.Builder
	table.WriteString("| annotation | on | flag of both processes | environment variable |\n|---|---|---|---|\n")
	for _, setting := range checksum.Settings() {
		name, variable := "", ""
		if setting.OnFlag() {
			name, variable = "`--"+setting.Name()+"`", "`"+envName(&pflag.Flag{Name: setting.Name()})+"`"
		}
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s |\n", setting.Key(), strings.ReplaceAll(setting.On, ", flag", ""), name, variable)
	}
	return table.String()
}

// Every event that can be written has a row in docs/reference.md, and every row is
// of an event that can be.
func TestReferenceKnowsEveryEvent(t *testing.T) {
	document, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, events, found := strings.Cut(string(document), "\n## Events\n")
	if !found {
		t.Fatal("docs/reference.md has no chapter Events")
	}
	events, _, _ = strings.Cut(events, "\n## ")
	var documented []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([A-Za-z]+)` \\| (?:Normal|Warning) \\|").FindAllStringSubmatch(events, -1) {
		documented = append(documented, row[1])
	}
	slices.Sort(documented)
	if written := reasons(t); !slices.Equal(documented, written) {
		t.Errorf("docs/reference.md tells of the events\n%v\nand the code writes\n%v", documented, written)
	}
}

// reasons finds the reasons of events in the code: the constants of the
// controller's type for them, and what is written out in a call of Eventf.
func reasons(t *testing.T) []string {
	t.Helper()
	var found []string
	for _, folder := range []string{"../../controller", "../../webhook", "."} {
		files, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("reading the code in %s: %d files, %v", folder, len(files), err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(parsed, func(node ast.Node) bool {
				found = append(found, reasonsIn(node)...)
				return true
			})
		}
	}
	slices.SortFunc(found, cmp.Compare[string])
	return slices.Compact(found)
}

func reasonsIn(node ast.Node) (found []string) {
	var literals []ast.Expr
	switch node := node.(type) {
	case *ast.ValueSpec:
		if kind, ok := node.Type.(*ast.Ident); ok && kind.Name == "reason" {
			literals = node.Values
		}
	case *ast.CallExpr:
		if call, ok := node.Fun.(*ast.SelectorExpr); ok && call.Sel.Name == "Eventf" && len(node.Args) > 3 {
			literals = node.Args[3:4]
		}
	}
	for _, literal := range literals {
		if text, ok := literal.(*ast.BasicLit); ok && text.Kind == token.STRING {
			if name, err := strconv.Unquote(text.Value); err == nil {
				found = append(found, name)
			}
		}
	}
	return found
}
