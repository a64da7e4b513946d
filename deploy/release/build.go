package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// architectures are those of the image.
func architectures() []string { return []string{"amd64", "arm64"} }

// compile builds configstamp for Linux, as the Dockerfile does.
func (r *release) compile(ctx context.Context, architecture string) ([]byte, error) {
	folder, err := os.MkdirTemp("", "configstamp-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	binary := filepath.Join(folder, "configstamp")
	_, err = r.command(ctx, []string{"GOOS=linux", "GOARCH=" + architecture}, "go", "build", "-trimpath", "-buildvcs=false", "-o", binary,
		"-ldflags", fmt.Sprintf("-s -w -buildid= -X main.version=%s -X main.commit=%s", r.version, r.short()), "./cmd/configstamp")
	if err != nil {
		return nil, err
	}
	return os.ReadFile(binary)
}

// command runs a program in the checkout, and returns what it printed. No setting of
// whoever runs it changes what Go builds.
func (r *release) command(ctx context.Context, environment []string, name string, args ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, name, args...)
	command.Dir = r.root
	command.Env = append(append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOAMD64=", "GOARM64=", "GOEXPERIMENT=", "GOFIPS140=", "GOWORK=off"), environment...)
	command.Stderr = os.Stderr
	printed, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", command, err)
	}
	return printed, nil
}
