// Command recording draws what the demonstration recorded (asciicast v2) as an animated
// SVG. What the demonstration prints only ever adds lines, in one colour, so that a page
// of text which moves up behind a window is all that is needed; a recording with escape
// sequences is refused. The drawing needs no script and no font of its own, stands still
// for who prefers that, and can be read on a dark page and on a light one.
//
// read.go makes frames of the recording, draw.go an SVG of the frames.
package main

import (
	"bytes"
	"fmt"
	"os"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: recording <from.cast> <to.svg>")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "recording:", err)
		os.Exit(1)
	}
}

func run(from, to string) error {
	recording, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	lines, err := read(bytes.NewReader(recording))
	if err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	return os.WriteFile(to, draw(lines), 0o644)
}
