package rollout_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/rollout"
)

var update = flag.Bool("update", false, "write the stories in testdata anew")

// log is a story: one line for each thing that happens, with the minutes and seconds
// since it began. Of a long story one line for each minute
// counts what happens in it.
type log struct {
	text    strings.Builder
	summary bool
	kinds   []string // of the lines of the minute, in their order
	counts  map[string]int
	minute  int
}

// clock writes a duration as minutes and seconds.
func clock(d time.Duration) string {
	return fmt.Sprintf("%02d:%02d", int(d/time.Minute), int(d/time.Second)%60)
}

// say writes a line about somebody.
func (w *world) say(who, what string) {
	if w.log == nil {
		return
	}
	if !w.log.summary {
		w.line(clock(w.now.Sub(w.zero)), who, what)
		return
	}
	if minute := int(w.now.Sub(w.zero) / time.Minute); minute != w.log.minute {
		w.flush()
		w.log.minute = minute
	}
	if w.log.counts[what]++; w.log.counts[what] == 1 {
		w.log.kinds = append(w.log.kinds, what)
	}
}

func (w *world) line(when, who, what string) {
	fmt.Fprintln(&w.log.text, strings.TrimRight(fmt.Sprintf("%s  %-26s %s", when, who, what), " "))
}

// flush writes the minute that has passed.
func (w *world) flush() {
	texts := make([]string, 0, len(w.log.kinds))
	for _, kind := range w.log.kinds {
		texts = append(texts, fmt.Sprintf("%d: %s", w.log.counts[kind], kind))
	}
	if len(texts) > 0 {
		fmt.Fprintln(&w.log.text, clock(time.Duration(w.log.minute)*time.Minute)+"  "+strings.Join(texts, "; "))
	}
	w.log.kinds, w.log.counts = nil, map[string]int{}
}

// heading writes a comment.
func (w *world) heading(text string) {
	for line := range strings.Lines(text) {
		fmt.Fprintln(&w.log.text, "# "+strings.TrimSpace(line))
	}
}

func (w *world) sayRoll(a *app, untrue []checksum.Source, byUs bool) {
	if w.log == nil {
		return
	}
	who := "rolls"
	if !byUs {
		who = "somebody changes its template, so that it rolls"
	}
	if w.log.summary || len(untrue) == 0 {
		w.say(a.name(), who)
		return
	}
	texts := make([]string, 0, len(untrue))
	for _, source := range untrue {
		has, of := 0, 0
		for _, ref := range w.bySource[rollout.SourceRef{Namespace: a.ref.Namespace, Source: source}] {
			its := w.apps[ref].carried[source]
			if its == nil {
				continue // it is outside
			}
			if of++; its.number == a.carried[source].number {
				has++
			}
		}
		text := fmt.Sprintf("%d of %d", has, of)
		if len(a.sources) > 1 {
			text = source.String() + " " + text
		}
		texts = append(texts, text)
	}
	w.say(a.name(), who+": "+strings.Join(texts, ", "))
}

func (w *world) sayEdit(at rollout.SourceRef, was, is *content) {
	what := "is edited"
	switch {
	case was != nil && was.bad != fine && is.number < was.number:
		what = "is put back"
	case is.bad != fine:
		what = "is edited badly: " + map[fate]string{crashes: "pods crash with it", waits: "pods wait for ever with it", flaps: "pods crash after three seconds with it", fades: fmt.Sprintf("pods crash after %s with it", is.up)}[is.bad]
	case was != nil && was.bad != fine:
		what = "is mended"
	}
	w.say(at.Namespace+" "+at.Source.String(), what)
}

func (w *world) sayCount(who, what string, n int) {
	if w.log != nil {
		w.say(who, fmt.Sprintf("%s %d workloads", what, n))
	}
}

// tell begins a story. It is printed if it goes wrong.
func (w *world) tell(text string, summary bool) {
	w.zero = w.now
	w.log = &log{summary: summary, counts: map[string]int{}}
	w.heading(text)
	w.t.Cleanup(func() {
		if w.flush(); w.t.Failed() {
			w.t.Log("\n" + w.log.text.String())
		}
	})
}

// keep ends a story that is kept for people to read, in testdata.
func (w *world) keep(name string) {
	w.t.Helper()
	w.flush()
	path, is := filepath.Join("testdata", name+".log"), w.log.text.String()
	if *update && !w.t.Failed() {
		if err := os.WriteFile(path, []byte(is), 0o644); err != nil {
			w.t.Fatal(err)
		}
	}
	was, err := os.ReadFile(path)
	if err != nil {
		w.t.Fatal(err)
	}
	if string(was) != is {
		w.t.Errorf("%s is stale: make generate writes it", path)
	}
}
