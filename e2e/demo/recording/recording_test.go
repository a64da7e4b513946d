package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"reflect"
	"strings"
	"testing"
)

func TestRead_BreaksShortensAndPaces(t *testing.T) {
	lines, err := read(strings.NewReader(`{"version":2,"width":100,"height":30}
[0.1,"o","━━━ one"]
[0.1001,"o"," scene\n\n"]
[0.2,"o","  $ kubectl get events\n"]
[20.2,"o","    5s        Warning   ` + strings.Repeat("word ", 20) + `\n"]
`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i, line := range lines {
		got = append(got, line.kind+" "+line.text)
		if i > 0 && line.at < lines[i-1].at {
			t.Errorf("%q comes before the line above it", line.text)
		}
	}
	want := []string{"t ━━━ one scene", "n ", "c   $ kubectl get events", "b     … 20 seconds later",
		"w     5s  Warning  " + strings.TrimSpace(strings.Repeat("word ", 16)), "w       word word word word"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("lines %q\nwant %q", got, want)
	}
	if end := lines[len(lines)-1].at; end > 2*longest+1 {
		t.Errorf("twenty seconds in which nothing happens take %.1f", end)
	}
}

func TestRead_RefusesWhatIsNoPageOfLines(t *testing.T) {
	for _, cast := range []string{"", "{}\n", "{\"version\":2}\n[0.1,\"o\",\"\\u001b[2J\"]\n"} {
		if _, err := read(strings.NewReader(cast)); err == nil {
			t.Errorf("%q is taken", cast)
		}
	}
}

// The drawing in the docs is one that this makes: small, well formed, without a script.
func TestTheDrawingIsSmallAndSound(t *testing.T) {
	drawing, err := os.ReadFile("../../../docs/bad-edit.svg")
	if err != nil {
		t.Fatal(err)
	}
	if len(drawing) > 100_000 {
		t.Errorf("it has %d bytes", len(drawing))
	}
	for _, want := range []string{"prefers-reduced-motion", "ChangeHalted", "3 halted", "the change has rolled out"} {
		if !strings.Contains(string(drawing), want) {
			t.Errorf("it does not hold %q", want)
		}
	}
	tokens := xml.NewDecoder(strings.NewReader(string(drawing)))
	for {
		token, err := tokens.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if start, is := token.(xml.StartElement); is && start.Name.Local == "script" {
			t.Error("it holds a script")
		}
	}
}
