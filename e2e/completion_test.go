package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/configstamp/configstamp/e2e/harness"
)

// What a person's tabulator does, in each shell, behind kubectl: kubectl's own script runs,
// which runs kubectl, which runs kubectl_complete-configstamp, which asks the cluster.

func TestCompletion_InShells(t *testing.T) {
	harness.Long(t)
	t.Parallel()
	s := run.Space(t)
	s.Set("configmap/payment-api-config", "endpoint", "v1")
	s.Apply(deployment("legacy-app", "configmap/payment-api-config"))
	in := "kubectl configstamp "
	of := " -n " + s.Namespace
	lines := map[string]string{ // what is typed, and what stands there then
		in + "use":                                  "users",
		in + "users conf":                           "configmap/",
		in + "why dep":                              "deployment/",
		in + "users" + of + " cm/pay":               "cm/payment-api-config",
		in + "impact" + of + " configmap/pay":       "configmap/payment-api-config",
		in + "why" + of + " deployment/leg":         "deployment/legacy-app",
		in + "status -o js":                         "json",
		in + "status -n " + clipped(s.Namespace, 2): s.Namespace,
	}
	programs := completing(t)
	for shell, ask := range map[string]func(lines []string) (script string){"bash": bashScript, "fish": fishScript, "zsh": zshScript} {
		t.Run(shell, func(t *testing.T) {
			if _, err := exec.LookPath(shell); err != nil {
				t.Skipf("SKIPPED (%d checks): completion in %s, which is not installed: apt-get install %[2]s", len(lines), shell)
			}
			if _, err := os.Stat(bashCompletion); shell == "bash" && err != nil {
				t.Skipf("SKIPPED (%d checks): completion in bash: apt-get install bash-completion", len(lines))
			}
			var typed []string
			for line := range lines {
				typed = append(typed, line)
			}
			got := answered(t, shell, ask(typed), programs)
			for i, line := range typed {
				if want := lines[line]; i >= len(got) || got[i] != want {
					t.Errorf("%q and a tabulator gives %q, want %q", line, got[min(i, len(got)):min(i+1, len(got))], want)
				}
			}
		})
	}
}

// clipped is a text without its last characters.
func clipped(text string, by int) string { return text[:len(text)-by] }

// completing is a folder with the plugin under both of its names.
func completing(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(folder, "kubectl-configstamp"), "../cmd/kubectl-configstamp").CombinedOutput()
	if err != nil {
		t.Fatalf("building the plugin: %v\n%s", err, out)
	}
	harness.Must(t, os.Symlink("kubectl-configstamp", filepath.Join(folder, "kubectl_complete-configstamp")))
	return folder
}

// answered runs a script, which prints one line for each that is typed.
func answered(t *testing.T, shell, script, programs string) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	file := filepath.Join(t.TempDir(), "script")
	harness.Must(t, os.WriteFile(file, []byte(script), 0o600))
	command := exec.CommandContext(ctx, shell, file)
	command.Env = append(os.Environ(), "KUBECONFIG="+run.Of(t).Kubeconfig(), "HOME="+t.TempDir(), "TERM=xterm",
		"PATH="+strings.Join([]string{programs, run.Of(t).Programs(), os.Getenv("PATH")}, string(os.PathListSeparator)))
	var errs strings.Builder
	command.Stderr = &errs
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", shell, err, out, errs.String())
	}
	return strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
}

// bashCompletion is of Debian's package bash-completion, without which kubectl completes
// nothing in bash.
const bashCompletion = "/usr/share/bash-completion/bash_completion"

// bashScript calls the function that bash calls at the tabulator.
func bashScript(lines []string) string {
	script := "source " + bashCompletion + "\nsource <(kubectl completion bash)\n" +
		"compopt() { :; }\n" + // there is no line that is edited
		"ask() { COMP_LINE=$1; COMP_POINT=${#1}; COMP_WORDS=($1); COMP_CWORD=$((${#COMP_WORDS[@]}-1)); COMPREPLY=(); __start_kubectl; echo ${COMPREPLY[*]}; }\n"
	for _, line := range lines {
		script += fmt.Sprintf("ask %q\n", line)
	}
	return script
}

// fishScript asks fish what it would offer.
func fishScript(lines []string) string {
	script := "kubectl completion fish | source\n"
	for _, line := range lines {
		script += fmt.Sprintf("echo (complete --do-complete %q | string replace -r '\\t.*' '')\n", line)
	}
	return script
}

// zshScript types into a zsh that has a terminal, as zsh completes nowhere else. A key of its
// own prints the last word of the line.
func zshScript(lines []string) string {
	script := "zmodload zsh/zpty\nzpty shell zsh -f -i\nout=$(mktemp)\n" +
		"zpty -w shell 'autoload -Uz compinit; compinit -D -u; source <(kubectl completion zsh)'\n" +
		"zpty -w shell 'report() { local words=(${=BUFFER}); print -r -- $words[-1] >> '$out'; BUFFER=; }; zle -N report; bindkey \"^I\" complete-word \"^Xr\" report'\n"
	for _, line := range lines {
		script += fmt.Sprintf("zpty -w -n shell %q$'\\t\\x18r'\n", line)
	}
	return script + fmt.Sprintf("until (( $(wc -l < $out) == %d )); do while zpty -r -t shell said; do :; done; sleep 0.1; done\ncat $out\nzpty -d shell\nrm $out\n", len(lines))
}
