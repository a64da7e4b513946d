package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/inspect"
	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/seen"
	"github.com/configstamp/configstamp/internal/workload"
)

// asking shows a person at a terminal what is known while the webhook is asked. It writes to
// stderr, and takes it away again before the answer is printed.
type asking struct {
	p     *plugin
	known func(to io.Writer)

	mu       sync.Mutex
	done, of int
	begun    bool
	over     bool
	lines    int // of what is known, on the screen
}

// askShowing reads a fleet, and shows what is known of it while the webhook is asked, when
// that takes long.
func (p *plugin) askShowing(ctx context.Context, cluster *inspect.Cluster, settings *seen.Settings, which inspect.Which, known func(io.Writer, *seen.Fleet)) (*seen.Fleet, error) {
	fleet, err := cluster.Unasked(ctx, settings, which)
	if err != nil {
		return nil, err
	}
	unasked := *fleet
	unasked.Outcomes = make(map[workload.Ref]seen.Outcome, len(fleet.Workloads))
	for _, w := range fleet.Workloads {
		unasked.Outcomes[w.Ref] = seen.UnknownBecause("the webhook is being asked")
	}
	a := &asking{p: p, known: func(to io.Writer) { known(to, &unasked) }}
	slow := time.AfterFunc(p.patience.slow, a.show)
	defer slow.Stop()
	defer a.end()
	cluster.AskAll(ctx, fleet, a.answered)
	return fleet, nil
}

// answered takes how many questions have been answered.
func (a *asking) answered(done, of int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.done, a.of = done, of; a.begun {
		a.showCount()
	}
}

// show shows what is known, unless the answer was there in time.
func (a *asking) show() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over {
		return
	}
	a.begun = true
	var text bytes.Buffer
	fmt.Fprintln(&text, a.p.paint(bold, "What is known so far:"))
	a.known(&text)
	fmt.Fprintln(&text)
	width, _ := sizeOf(a.p.ErrOut)
	for line := range strings.Lines(text.String()) { // a long one takes several
		a.lines += max(1, (utf8.RuneCountInString(line)-2+width)/width)
	}
	fmt.Fprint(a.p.ErrOut, text.String())
	a.showCount()
}

func (a *asking) showCount() {
	if a.of == 0 {
		fmt.Fprint(a.p.ErrOut, "\r\x1b[Kasking the webhook …")
		return
	}
	fmt.Fprintf(a.p.ErrOut, "\r\x1b[Kasking the webhook: %d of %d questions are answered", a.done, a.of)
}

// end takes away what was shown, as far as it is still on the screen.
func (a *asking) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
	_, height := sizeOf(a.p.ErrOut)
	switch {
	case !a.begun:
	case a.lines < height:
		fmt.Fprintf(a.p.ErrOut, "\r\x1b[K\x1b[%dA\x1b[J", a.lines)
	default:
		fmt.Fprint(a.p.ErrOut, "\r\x1b[KThe webhook has answered:\n\n")
	}
}

// sizeOf is how many columns and lines a terminal has.
func sizeOf(to io.Writer) (width, height int) {
	if file, isFile := to.(*os.File); isFile {
		if width, height, err := term.GetSize(int(file.Fd())); err == nil && width > 0 {
			return width, height
		}
	}
	return narrow, 24
}
