// Command demo plays, on an embedded Kubernetes with real containers, what the
// documents tell from which configstamp came, and says what happens and why.
// Everything is done with kubectl, as a user would; what it shows is checked,
// and it fails if anything of it was not true.
//
// Start at scenes.go; stage.go holds the means.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	kubeconfig := flag.String("kubeconfig", os.Getenv("KUBECONFIG"), "cluster to play in, with configstamp installed")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	err := play(ctx, &stage{kubeconfig: *kubeconfig, out: os.Stdout, began: time.Now()})
	cancel()
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "\nThe demonstration failed: %v\n", err)
		os.Exit(1)
	}
}

func play(ctx context.Context, s *stage) error {
	for _, scene := range scenes() {
		s.title(scene.title)
		began := time.Now()
		if err := scene.play(ctx, s); err != nil {
			return fmt.Errorf("scene %q: %w", scene.title, err)
		}
		s.shown = append(s.shown, fmt.Sprintf("%5.1fs  %s", time.Since(began).Seconds(), scene.proves))
	}
	s.title("What you saw")
	for _, line := range s.shown {
		s.say("  %s", line)
	}
	s.say("\n%d checks held, none failed. %.0f seconds.", s.held, time.Since(s.began).Seconds())
	return nil
}
