package cost_test

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/configstamp/configstamp/e2e/cost"
	_ "github.com/configstamp/configstamp/internal/impact" // what ./count runs: without them a result of another product may be cached
	_ "github.com/configstamp/configstamp/webhook"
)

// An object is made three times, each with four times as many of all: what a byte costs that
// comes with the last step is compared with those of the step before. Of what costs the square it
// is up to four times as much; sorting takes a fifth more. What grows is looked at once more, one
// step later: lists end, and a few may mean another thing than many.
const (
	few  = 64
	some = 4 * few
	many = 4 * some
	more = 4 * many
	// mostOfAll is what a byte of an object may cost at all, usual bytes aside: an empty one
	// costs something.
	mostOfAll, usual = 400, 16 << 10
	// suspicious is how many times as much a byte costs in what is looked at once more.
	suspicious = 1.2
)

// counting asks a running ./count.
type counting struct {
	ask    *json.Encoder
	answer *json.Decoder
}

func start(t testing.TB) *counting {
	t.Helper()
	program := filepath.Join(t.TempDir(), "count")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "-covermode=atomic", "-coverpkg="+cost.Counted, "./count")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", build, err, text)
	}
	run := exec.CommandContext(t.Context(), program)
	run.Env = append(os.Environ(), "GOCOVERDIR="+t.TempDir())
	run.Stderr = os.Stderr
	in, err := run.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := run.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_, _ = io.Copy(io.Discard, out)
		_ = run.Wait()
	})
	return &counting{json.NewEncoder(in), json.NewDecoder(out)}
}

func (c *counting) count(t testing.TB, shape cost.Shape, n int) []cost.Read {
	t.Helper()
	var a cost.Answer
	if err := c.ask.Encode(cost.Question{Shape: shape, N: n}); err != nil {
		t.Fatal(err)
	}
	if err := c.answer.Decode(&a); err != nil || a.Error != "" {
		t.Fatalf("%v: %s: shape %v", err, a.Error, shape)
	}
	return a.Reads
}

// seeds are what was found to cost the square once, and what is near to it.
func seeds() map[string]cost.Shape {
	const two, some, many = 2, 3, 4 // of lists
	return map[string]cost.Shape{
		"volumes of one source":               {cost.Containers: 1, cost.Volumes: many, cost.Mounts: many, cost.Mounting: 1},
		"variables of many sources":           {cost.Containers: 1, cost.EnvFrom: many, cost.Naming: 2, cost.Stamps: 1, cost.Pins: 1},
		"each shows a key that is ignored":    {cost.Containers: 1, cost.Volumes: many, cost.Mounts: many, cost.Mounting: 1, cost.Naming: 2, cost.Says: 1, cost.Keys: two},
		"each lacks a key":                    {cost.Containers: 1, cost.Env: many, cost.Naming: 2, cost.Pins: 2},
		"containers share volumes in a chain": {cost.Containers: many, cost.Volumes: many, cost.Mounts: two, cost.Mounting: 2, cost.Paths: 4, cost.Pins: 1},
		"and from the other end":              {cost.Containers: many, cost.Volumes: many, cost.Mounts: two, cost.Mounting: 3, cost.Paths: 4, cost.Pins: 1},
		"items of a volume of many":           {cost.Containers: many, cost.Volumes: 1, cost.Mounts: 1, cost.Items: many, cost.Keys: many, cost.Pins: 1},
		"each mounts a path of a volume":      {cost.Containers: many, cost.Volumes: 1, cost.Mounts: 1, cost.Projected: many, cost.Paths: 2, cost.Naming: 2, cost.Pins: 1},
		"all volumes have one name":           {cost.Containers: 1, cost.Volumes: many, cost.Mounts: many, cost.Mounting: 4, cost.Paths: 2, cost.Items: 1},
		"an undo of many pins":                {cost.Containers: 1, cost.EnvFrom: many, cost.Naming: 2, cost.Stamps: 2, cost.Pins: 1, cost.Declined: 2},
		"declined, of keys that nobody knows": {cost.Containers: 1, cost.EnvFrom: many, cost.Naming: 2, cost.Stamps: 5, cost.Pins: 1, cost.Declined: 2},
		"stamps under many keys":              {cost.Containers: 1, cost.EnvFrom: many, cost.Naming: 2, cost.Stamps: 4, cost.Declined: 4},
		"all but one are gone":                {cost.Containers: 1, cost.EnvFrom: many, cost.Naming: 2, cost.Optional: 1, cost.Stamps: 1, cost.Exists: 1},
		"one source by all, of many keys":     {cost.Containers: many, cost.EnvFrom: two, cost.Keys: many, cost.Stamps: 2, cost.Baseline: 1, cost.Settings: 1},
		"settings name what nobody does":      {cost.Containers: some, cost.EnvFrom: two, cost.Naming: 2, cost.Settings: 3, cost.Dialect: 2},
		"and other products' too":             {cost.Containers: some, cost.EnvFrom: two, cost.Naming: 2, cost.Settings: 4, cost.Dialect: 3},
		"globs, over many keys":               {cost.Containers: 1, cost.EnvFrom: 1, cost.Keys: many, cost.Says: 2, cost.Settings: 5, cost.Stamps: 2},
		"annotations, deep fields, managers":  {cost.Containers: 1, cost.Foreign: many, cost.Nested: many, cost.Managed: many},
	}
}

// FuzzCost finds objects that cost more than a small constant times their size.
func FuzzCost(f *testing.F) {
	for _, shape := range seeds() {
		f.Add(shape[:])
	}
	c := start(f)
	f.Fuzz(func(t *testing.T, bytes []byte) {
		var shape cost.Shape
		copy(shape[:], bytes)
		for _, complaint := range c.judge(t, shape) {
			t.Errorf("shape %v: %s", shape, complaint)
		}
	})
}

// judge says which reads of an object cost too much.
func (c *counting) judge(t testing.TB, shape cost.Shape) (complaints []string) {
	small, medium, large := c.count(t, shape, few), c.count(t, shape, some), c.count(t, shape, many)
	var larger []cost.Read
	for i, is := range large {
		for _, of := range counts() {
			if all := float64(of.in(is)) / float64(is.Size+usual); all > mostOfAll {
				complaints = append(complaints, fmt.Sprintf("%s: %.0f %s for each of %d bytes", is.Name, all, of.what, is.Size))
				continue // the next step could take minutes
			}
			if !of.grow(suspicious, small[i], medium[i], is) {
				continue
			}
			if larger == nil {
				larger = c.count(t, shape, more)
			}
			if of.grow(of.most, medium[i], is, larger[i]) {
				complaints = append(complaints, fmt.Sprintf("%s: %s for each byte: %.1f up to %d bytes, %.1f up to %d, %.1f up to %d", is.Name, of.what,
					of.each(small[i], medium[i]), medium[i].Size, of.each(medium[i], is), is.Size, of.each(is, larger[i]), larger[i].Size))
			}
		}
	}
	return complaints
}

// counted is what is counted.
type counted struct {
	what string
	in   func(cost.Read) uint64
	// most is how many times as much a byte may cost of the next step, where it costs more
	// than usual.
	most, usual float64
}

func counts() []counted {
	return []counted{
		{"statements", func(r cost.Read) uint64 { return r.Statements }, 1.3, 0.1},
		{"allocated", func(r cost.Read) uint64 { return r.Bytes }, 2, 50}, // there is room for more than is needed, now and then
	}
}

// grow reports whether a byte costs so many times as much with the last step.
func (c *counted) grow(times float64, small, medium, large cost.Read) bool {
	grown := medium.Size > 2*small.Size && large.Size > 2*medium.Size
	return grown && c.each(medium, large) > times*max(c.each(small, medium), c.usual)
}

// each is what a byte costs that one has more than another.
func (c *counted) each(small, large cost.Read) float64 {
	return (float64(c.in(large)) - float64(c.in(small))) / float64(large.Size-small.Size)
}
