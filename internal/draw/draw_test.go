package draw_test

import (
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/answer"
	"github.com/configstamp/configstamp/internal/draw"
)

var update = flag.Bool("update", false, "write testdata anew")

// build makes a graph.
type build struct {
	answer.Graph
	sources map[string]int
}

func (b *build) workload(namespace, name string, state answer.State, sources ...string) {
	b.Workloads = append(b.Workloads, answer.GraphWorkload{Namespace: namespace, Workload: name, State: state})
	for _, text := range sources {
		text, uncounted := strings.CutSuffix(text, "?")
		source, err := checksum.ParseSource(text)
		if err != nil {
			panic(err)
		}
		if b.sources == nil {
			b.sources = map[string]int{}
		}
		at, known := b.sources[namespace+text]
		if !known {
			at = len(b.Sources)
			b.sources[namespace+text] = at
			b.Sources = append(b.Sources, answer.GraphSource{Namespace: namespace, Source: source, State: answer.Done})
		}
		use := answer.GraphUse{Namespace: namespace, Source: source, Workload: name, Counts: !uncounted, State: answer.Done, Uses: []answer.Usage{{Use: checksum.Startup, How: "env", Keys: []string{"A", "B"}}}}
		if state != answer.Done && state != answer.Unserved && !uncounted {
			use.State, b.Sources[at].State = state, state
		}
		b.Uses = append(b.Uses, use)
	}
}

// five is a small shop.
func five() *answer.Graph {
	b := &build{}
	b.workload("shop", "deployment/payment-api", answer.Halted, "configmap/payment-api-config", "secret/db")
	b.workload("shop", "deployment/payment-worker", answer.Failed, "configmap/payment-api-config")
	b.workload("shop", "statefulset/ledger", answer.Done, "secret/db", "configmap/ledger?")
	b.workload("shop", "cronjob/report", answer.Unserved, "configmap/payment-api-config?")
	b.workload("web", "rollout.argoproj.io/a-frontend-with-a-name-that-is-much-longer-than-a-box-may-be-wide", answer.Unknown, `configmap/nginx`)
	b.workload("web", "deployment/legacy", answer.Held, "secret/gone")
	b.Sources[len(b.Sources)-1].Missing = true
	b.Without = 2
	return &b.Graph
}

// twoHundred is 200 workloads of three namespaces: most have a ConfigMap of their own, some
// share a Secret, sixty a bundle.
func twoHundred() *answer.Graph {
	b := &build{}
	states := []answer.State{answer.Done, answer.Done, answer.Done, answer.Done, answer.Done, answer.Waiting, answer.Done, answer.Done, answer.Held, answer.Done, answer.Done, answer.Rolling, answer.Done}
	for i := range 200 {
		namespace := []string{"shop", "payments", "search"}[i%3]
		name := fmt.Sprintf("deployment/%s-%d", []string{"api", "worker", "frontend", "cache", "gateway"}[i*7%5], i)
		sources := []string{fmt.Sprintf("configmap/settings-%d", i)}
		if namespace == "payments" {
			sources = append(sources, "configmap/ca-bundle")
		}
		if i%4 == 1 {
			sources = append(sources, fmt.Sprintf("secret/db-%d", i*13%9))
		}
		if i%10 == 3 {
			sources = append(sources, "secret/registry?")
		}
		b.workload(namespace, name, states[i%len(states)], sources...)
	}
	return &b.Graph
}

func TestDrawings(t *testing.T) {
	for name, text := range map[string]string{
		"five.svg": draw.SVG(five()), "five.dot": draw.DOT(five()), "five.mmd": draw.Mermaid(five()),
		"nothing.svg": draw.SVG(&answer.Graph{}), "two-hundred.svg": draw.SVG(twoHundred()),
	} {
		path := "testdata/" + name
		if *update {
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), text); diff != "" {
			t.Errorf("%s (make generate writes it; look at it then): %s", path, diff)
		}
	}
}

// rect is a box of an SVG, or the ends of a line.
type rect struct{ x, y, width, height float64 }

// shapes reads an SVG: the boxes of nodes, the ends of lines, and the size of all.
func shapes(t *testing.T, text string) (boxes, lines []rect, width, height float64) {
	t.Helper()
	decoder := xml.NewDecoder(strings.NewReader(text))
	inNode := 0
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return boxes, lines, width, height
		}
		if err != nil {
			t.Fatalf("not XML: %v", err)
		}
		if end, is := token.(xml.EndElement); is && end.Name.Local == "g" {
			inNode--
		}
		start, is := token.(xml.StartElement)
		if !is {
			continue
		}
		value := map[string]string{}
		for _, a := range start.Attr {
			value[a.Name.Local] = a.Value
		}
		number := func(name string) float64 { n, _ := strconv.ParseFloat(value[name], 64); return n }
		switch start.Name.Local {
		case "svg":
			width, height = number("width"), number("height")
		case "g":
			inNode++
		case "rect":
			if inNode > 0 {
				boxes = append(boxes, rect{number("x"), number("y"), number("width"), number("height")})
			}
		case "path":
			parts := strings.FieldsFunc(value["d"], func(r rune) bool { return strings.ContainsRune("MC ", r) })
			if len(parts) == 8 {
				var n [8]float64
				for i := range parts {
					n[i], _ = strconv.ParseFloat(parts[i], 64)
				}
				lines = append(lines, rect{n[0], n[1], n[6], n[7]})
			}
		}
	}
}

// Boxes lie apart, within the picture, and each line begins and ends at one.
func TestSVG_NothingLiesUponAnother(t *testing.T) {
	for name, g := range map[string]*answer.Graph{"five": five(), "two hundred": twoHundred()} {
		boxes, lines, width, height := shapes(t, draw.SVG(g))
		if len(boxes) != len(g.Sources)+len(g.Workloads) || len(lines) != len(g.Uses) {
			t.Errorf("%s: %d boxes and %d lines", name, len(boxes), len(lines))
		}
		ends := map[[2]float64]bool{}
		for i, a := range boxes {
			if a.x < 0 || a.y < 0 || a.x+a.width > width || a.y+a.height > height {
				t.Errorf("%s: %v is outside", name, a)
			}
			for _, b := range boxes[:i] {
				if a.x < b.x+b.width && b.x < a.x+a.width && a.y < b.y+b.height && b.y < a.y+a.height {
					t.Errorf("%s: %v and %v lie upon another", name, a, b)
				}
			}
			ends[[2]float64{a.x, round(a.y + a.height/2)}] = true
			ends[[2]float64{round(a.x + a.width), round(a.y + a.height/2)}] = true
		}
		for _, l := range lines {
			if !ends[[2]float64{l.x, round(l.y)}] || !ends[[2]float64{l.width, round(l.height)}] {
				t.Errorf("%s: a line from %v to %v has no box at its end", name, []float64{l.x, l.y}, []float64{l.width, l.height})
			}
		}
	}
}

func round(n float64) float64 { return float64(int(n*10+0.5)) / 10 }

// crossings counts lines that cross.
func crossings(lines []rect) (n int) {
	for i, a := range lines {
		for _, b := range lines[:i] {
			if a.x == b.x && (a.y-b.y)*(a.height-b.height) < 0 {
				n++
			}
		}
	}
	return n
}

// What belongs together stands together.
func TestSVG_FewLinesCross(t *testing.T) {
	_, lines, _, _ := shapes(t, draw.SVG(twoHundred()))
	if n := crossings(lines); n > 1600 {
		t.Errorf("%d crossings of %d lines", n, len(lines))
	}
	b := &build{}
	for i := range 30 { // a ladder that is read in the worst order
		b.workload("shop", fmt.Sprintf("deployment/w-%02d", i*17%30), answer.Done, fmt.Sprintf("configmap/s-%02d", i), fmt.Sprintf("configmap/s-%02d", i+1))
	}
	_, lines, _, _ = shapes(t, draw.SVG(&b.Graph))
	if n := crossings(lines); n > 30 {
		t.Errorf("%d crossings in a ladder, which needs none", n)
	}
}

// Words of others stay words.
func TestDrawings_QuoteWhatOthersSay(t *testing.T) {
	b := &build{}
	b.workload("shop", "deployment/web", answer.Held, "configmap/a")
	b.Workloads[0].Why = `"</title><script>alert(1)</script> #1 \ & more` + "\nnext"
	b.Workloads[0].Namespace, b.Sources[0].Namespace, b.Uses[0].Namespace = `x"]<b>`, `x"]<b>`, `x"]<b>`
	shapes(t, draw.SVG(&b.Graph))
	if text := draw.SVG(&b.Graph); strings.Contains(text, "<script") || strings.Contains(text, "<b>") {
		t.Errorf("SVG: %s", text)
	}
	if text := draw.DOT(&b.Graph); !strings.Contains(text, `\"</title><script>alert(1)</script> #1 \\ & more next"`) {
		t.Errorf("DOT: %s", text)
	}
	if text := draw.Mermaid(&b.Graph); strings.Contains(text, `x"]<b>`) || !strings.Contains(text, `x#quot;]#lt;b#gt;`) {
		t.Errorf("Mermaid: %s", text)
	}
}
