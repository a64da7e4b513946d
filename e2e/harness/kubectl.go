package harness

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Result is what kubectl printed.
type Result struct {
	Stdout, Stderr string
	Code           int
}

// Warnings are the admission warnings that kubectl showed, one for each line.
func (r Result) Warnings() []string {
	var warnings []string
	for line := range strings.Lines(r.Stderr) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), "Warning: "); ok {
			warnings = append(warnings, text)
		}
	}
	return warnings
}

// Kubectl runs the real kubectl as the administrator, in no namespace of a test.
func (r *Run) Kubectl(stdin string, args ...string) (Result, error) {
	return r.kubectl(stdin, nil, args...)
}

func (r *Run) kubectl(stdin string, environment []string, args ...string) (Result, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 6*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, filepath.Join(r.cluster.Programs, "kubectl"),
		append([]string{"--cache-dir=" + filepath.Join(r.Dir, "kubectl-cache")}, args...)...)
	command.Env = append(append(os.Environ(), "KUBECONFIG="+r.cluster.Kubeconfig,
		"PATH="+r.cluster.Programs+string(os.PathListSeparator)+os.Getenv("PATH")), environment...)
	if strings.HasPrefix(strings.TrimSpace(stdin), "{") {
		stdin = "---\n" + stdin // YAML, which kubectl 1.30 would take for JSON
	}
	command.Stdin = strings.NewReader(stdin)
	var out, errs bytes.Buffer
	command.Stdout, command.Stderr = &out, &errs
	err := command.Run()
	result := Result{Stdout: out.String(), Stderr: errs.String()}
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		result.Code = exit.ExitCode()
		return result, nil
	}
	return result, err
}
