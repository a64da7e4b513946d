package main

import (
	"bufio"
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// namespace is where the seeds' applications live.
const namespace = "production"

//go:embed manifests
var manifests embed.FS

// stage is where scenes are played.
type stage struct {
	kubeconfig string
	out        io.Writer
	began      time.Time
	shown      []string
	held       int
}

func (s *stage) title(text string) {
	fmt.Fprintf(s.out, "\n━━━ %s\n\n", text)
}

func (s *stage) say(format string, args ...any) {
	fmt.Fprintf(s.out, format+"\n", args...)
}

// kubectl runs kubectl in the namespace and shows the command and what it prints.
func (s *stage) kubectl(ctx context.Context, args ...string) (string, error) {
	s.say("  $ kubectl %s", quoted(args))
	printed, err := s.run(ctx, nil, args...)
	for line := range strings.Lines(printed) {
		fmt.Fprint(s.out, "    "+line)
	}
	return printed, err
}

// tells runs kubectl as the method kubectl does, and checks that what it prints has some words in it.
// They may be broken into lines.
func (s *stage) tells(ctx context.Context, want []string, args ...string) error {
	printed, err := s.kubectl(ctx, args...)
	if err != nil {
		return err
	}
	words := strings.Join(strings.Fields(printed), " ")
	for _, text := range want {
		if err := s.expect(strings.Contains(words, text), "kubectl %s says %q", quoted(args), text); err != nil {
			return err
		}
	}
	return nil
}

// watch shows what kubectl prints while something is done, from before that until nothing is
// under way again.
func (s *stage) watch(ctx context.Context, do func() error, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	s.say("  $ kubectl %s", quoted(args))
	command := s.command(ctx, args...)
	printed, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	command.Stderr = s.out
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = 5 * time.Second
	if err := command.Start(); err != nil {
		return err
	}
	lines := bufio.NewScanner(printed)
	before, moved := true, false
	for lines.Scan() {
		s.say("    %s", lines.Text())
		switch idle := strings.HasPrefix(lines.Text(), "Nothing is under way"); {
		case strings.Contains(lines.Text(), "not complete"):
			moved = !before // an edit of before may not be complete yet
		case idle && moved:
			cancel()
			s.held++
			_ = command.Wait() // it was interrupted
			return nil
		case idle && before:
			before = false
			if err := do(); err != nil {
				cancel()
				return errors.Join(err, command.Wait())
			}
		}
	}
	cancel()
	return fmt.Errorf("kubectl %s: not everything is done, before or a minute after: %w", quoted(args), errOr(command.Wait()))
}

// quiet runs kubectl without showing it.
func (s *stage) quiet(ctx context.Context, args ...string) (string, error) {
	return s.run(ctx, nil, args...)
}

// edit runs kubectl edit with an editor that replaces one text by another, and checks that
// whoever edits is warned in these words, if any.
func (s *stage) edit(ctx context.Context, source, from, to string, warned ...string) error {
	s.say("  $ kubectl edit %s          # %q becomes %q", source, from, to)
	editor := fmt.Sprintf("sed -i 's|%s|%s|'", from, to) // kubectl hands it to a shell
	printed, err := s.run(ctx, []string{"EDITOR=" + editor}, "edit", source)
	for line := range strings.Lines(printed) {
		fmt.Fprint(s.out, "    "+line)
	}
	if err != nil {
		return err
	}
	for _, text := range warned {
		if err := s.expect(strings.Contains(printed, "Warning: configstamp: "+text), "who edits %s is warned: %s", source, text); err != nil {
			return err
		}
	}
	return nil
}

func (s *stage) run(ctx context.Context, environment []string, args ...string) (string, error) {
	return s.pipe(ctx, nil, environment, args...)
}

func (s *stage) pipe(ctx context.Context, in io.Reader, environment []string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	command := s.command(ctx, args...)
	command.Env = append(command.Env, environment...)
	command.Stdin = in
	var printed bytes.Buffer
	command.Stdout, command.Stderr = &printed, &printed
	if err := command.Run(); err != nil {
		return printed.String(), fmt.Errorf("kubectl %s: %w: %s", quoted(args), err, strings.TrimSpace(printed.String()))
	}
	return printed.String(), nil
}

// command is kubectl in the namespace, if args name no other. A plugin's name has to come first.
func (s *stage) command(ctx context.Context, args ...string) *exec.Cmd {
	if !slices.ContainsFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "--namespace=") }) {
		args = append(slices.Clone(args), "--namespace="+namespace)
	}
	command := exec.CommandContext(ctx, "kubectl", args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+s.kubeconfig)
	return command
}

// apply applies one of the manifests.
func (s *stage) apply(ctx context.Context, name string) error {
	text, err := manifests.ReadFile("manifests/" + name)
	if err != nil {
		return err
	}
	s.say("  $ kubectl apply -f %s", name)
	printed, err := s.pipe(ctx, bytes.NewReader(text), nil, "apply", "-f", "-")
	for line := range strings.Lines(printed) {
		fmt.Fprint(s.out, "    "+line)
	}
	return err
}

// rolledOut waits until a Deployment's rollout is done.
func (s *stage) rolledOut(ctx context.Context, deployments ...string) error {
	for _, name := range deployments {
		if _, err := s.quiet(ctx, "rollout", "status", "deployment/"+name, "--timeout=90s"); err != nil {
			return err
		}
	}
	return nil
}

// answer asks a Service through the API server.
func (s *stage) answer(ctx context.Context, service string) (string, error) {
	printed, err := s.quiet(ctx, "get", "--raw", fmt.Sprintf("/api/v1/namespaces/%s/services/%s:3000/proxy/", namespace, service))
	return strings.TrimSpace(printed), err
}

// answers waits until a Service answers with a text, and shows it.
func (s *stage) answers(ctx context.Context, service, want string) error {
	var got string
	err := s.eventually(ctx, fmt.Sprintf("%s answers %q", service, want), func() (bool, error) {
		var err error
		got, err = s.answer(ctx, service)
		return strings.Contains(got, want), err
	})
	if err != nil {
		return fmt.Errorf("%w; it answers %q", err, got)
	}
	s.say("  %s answers: %s", service, got)
	return nil
}

// eventually waits up to a minute for something to be true.
func (s *stage) eventually(ctx context.Context, what string, check func() (bool, error)) error {
	deadline := time.Now().Add(time.Minute)
	for {
		ok, err := check()
		if ok && err == nil {
			s.held++
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s: not within a minute (%w)", what, errOr(err))
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, ctx.Err())
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// expect checks something that has to be true by now.
func (s *stage) expect(ok bool, format string, args ...any) error {
	if !ok {
		return fmt.Errorf("this is not true: "+format, args...)
	}
	s.held++
	return nil
}

// stamps gives the configstamp annotations of a Deployment's pod template.
func (s *stage) stamps(ctx context.Context, deployment string) (string, error) {
	printed, err := s.quiet(ctx, "get", "deployment", deployment, "-o",
		`go-template={{range $key, $value := .spec.template.metadata.annotations}}{{$key}}: {{$value}}{{"\n"}}{{end}}`)
	var ours []string
	for line := range strings.Lines(printed) {
		if strings.Contains(line, ".configstamp.dev/") {
			ours = append(ours, strings.TrimSpace(line))
		}
	}
	return strings.Join(ours, "\n"), err
}

// revisions counts the ReplicaSets of a Deployment: one for each rollout.
func (s *stage) revisions(ctx context.Context, deployment string) (int, error) {
	printed, err := s.quiet(ctx, "get", "replicasets", "-l", "app="+deployment, "-o", "name")
	return len(strings.Fields(printed)), err
}

// rolled checks how many rollouts Deployments have had.
func (s *stage) rolled(ctx context.Context, want int, deployments ...string) error {
	for _, name := range deployments {
		got, err := s.revisions(ctx, name)
		if err != nil {
			return err
		}
		if err := s.expect(got == want, "%s has %d ReplicaSets (it has %d)", name, want, got); err != nil {
			return err
		}
	}
	return nil
}

func quoted(args []string) string {
	words := make([]string, len(args))
	for i, arg := range args {
		words[i] = arg
		if strings.ContainsAny(arg, " {}'\"$|") {
			words[i] = "'" + arg + "'"
		}
	}
	return strings.Join(words, " ")
}

func errOr(err error) error {
	if err != nil {
		return err
	}
	return fmt.Errorf("it stayed otherwise")
}
