// Command demo plays, on an embedded Kubernetes with real containers, what the
// documents tell from which configstamp came, and says what happens and why.
// Everything is done with kubectl, as a user would; what it shows is checked,
// and it fails if anything of it was not true.
//
// Start at scenes.go; stage.go holds the means, and cast.go records what is printed,
// which ./recording draws.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

func main() {
	kubeconfig := flag.String("kubeconfig", os.Getenv("KUBECONFIG"), "cluster to play in, with configstamp installed")
	pins := flag.String("pins", "", "file that installs configstamp with pins, for the scene of that name")
	only := flag.String("scene", "", "play this one scene alone, after the first: a part of its title, such as shop-settings")
	cast := flag.String("cast", "", "file to record it in, what was printed when: asciicast v2 (with -scene, the scene alone)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	err := play(ctx, &stage{kubeconfig: *kubeconfig, pins: *pins, out: os.Stdout, began: time.Now()}, *only, *cast)
	cancel()
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "\nThe demonstration failed: %v\n", err)
		os.Exit(1)
	}
}

func play(ctx context.Context, s *stage, only, cast string) (err error) {
	chosen, err := choose(scenes(), only)
	if err != nil {
		return err
	}
	if only != "" { // the namespace is wanted, and not to be seen
		if err := optIn(ctx, s); err != nil {
			return err
		}
	}
	if cast != "" {
		recording, err := record(cast)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, recording.Close()) }()
		s.out = io.MultiWriter(os.Stdout, recording)
	}
	for _, scene := range chosen {
		s.title(scene.title)
		began := time.Now()
		if err := scene.play(ctx, s); err != nil {
			return fmt.Errorf("scene %q: %w", scene.title, err)
		}
		s.shown = append(s.shown, fmt.Sprintf("%5.1fs  %s", time.Since(began).Seconds(), scene.proves))
	}
	if only != "" {
		return nil
	}
	s.title("What you saw")
	for _, line := range s.shown {
		s.say("  %s", line)
	}
	s.say("\n%d checks held, none failed. %.0f seconds.", s.held, time.Since(s.began).Seconds())
	return nil
}

// choose gives the scene that is asked for, or all.
func choose(all []scene, only string) ([]scene, error) {
	if only == "" {
		return all, nil
	}
	for _, one := range all {
		if strings.Contains(one.title, only) {
			return []scene{one}, nil
		}
	}
	return nil, fmt.Errorf("no scene has %q in its title", only)
}
