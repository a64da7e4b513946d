package scenario

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/configstamp/configstamp/e2e/harness"
)

// nothings are programs that do nothing.
type nothings struct {
	// blank imports what the product imports; asleep is the product, if sleeping is in
	// its environment.
	blank, asleep string
}

const (
	ourModule = "github.com/configstamp/configstamp"
	sleeping  = "CONFIGSTAMP_BENCH_ASLEEP"
)

// buildNothing builds both as the product is built, of files that are laid over the
// checkout. file gives room for a file of a name.
func buildNothing(ctx context.Context, file func(name string) string) (*nothings, error) {
	root, err := harness.Root()
	if err != nil {
		return nil, err
	}
	imports, err := importsOfProduct(ctx, root)
	if err != nil {
		return nil, err
	}
	var blank strings.Builder
	blank.WriteString("package main\n\nimport (\n\t\"os\"\n\t\"os/signal\"\n\t\"syscall\"\n")
	for _, path := range imports {
		fmt.Fprintf(&blank, "\t_ %q\n", path)
	}
	blank.WriteString(")\n\nfunc main() {\n" + untilTold + "}\n")
	asleep := "package main\n\nimport (\n\t\"os\"\n\t\"os/signal\"\n\t\"syscall\"\n)\n\nfunc init() {\n\tif os.Getenv(\"" + sleeping + "\") == \"\" {\n\t\treturn\n\t}\n" + untilTold + "\tos.Exit(0)\n}\n"
	built := &nothings{blank: file("nothing-blank"), asleep: file("nothing-asleep")}
	for _, program := range []struct{ binary, path, text string }{
		{built.blank, "cmd/nothing/main.go", blank.String()},
		{built.asleep, "cmd/configstamp/asleep.go", asleep},
	} {
		if err := buildOver(ctx, root, program.binary, program.path, program.text); err != nil {
			return nil, err
		}
	}
	return built, nil
}

const untilTold = "\ttold := make(chan os.Signal, 1)\n\tsignal.Notify(told, syscall.SIGTERM)\n\t<-told\n"

// importsOfProduct lists what the product's own packages import of others.
func importsOfProduct(ctx context.Context, root string) ([]string, error) {
	command := exec.CommandContext(ctx, "go", "list", "-deps", "-f", "{{if .Module}}{{if .Module.Main}}{{join .Imports \"\\n\"}}{{end}}{{end}}", "./cmd/configstamp")
	command.Dir = root
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("listing what the product imports: %w", err)
	}
	imports := slices.DeleteFunc(strings.Fields(string(out)), func(path string) bool { return strings.HasPrefix(path, ourModule) })
	slices.Sort(imports)
	return slices.Compact(imports), nil
}

// buildOver builds the program that a file of the checkout belongs to, with that file as text.
func buildOver(ctx context.Context, root, binary, path, text string) error {
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(root, path): binary + ".go"}})
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{binary + ".go": []byte(text), binary + ".json": overlay} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			return fmt.Errorf("building %s: %w", filepath.Base(binary), err)
		}
	}
	command := exec.CommandContext(ctx, "go", "build", "-p", "1", "-trimpath", "-ldflags", "all=-s -w", "-overlay", binary+".json", "-o", binary, "./"+filepath.Dir(path))
	command.Dir = root
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", filepath.Base(binary), err, out)
	}
	return nil
}
