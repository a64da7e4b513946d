package main

import (
	"os"
	"strings"
	"testing"
)

func TestTheExampleIsAnswered(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), &out, "testdata/review.json", "testdata/objects.yaml"); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/answer.txt")
	if err != nil {
		t.Fatal(err)
	}
	if out.String() != string(want) {
		t.Errorf("the answer is\n%s\nwant\n%s", out.String(), want)
	}
}

func TestWhatIsNotAReviewIsRefused(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), &out, "testdata/objects.yaml", "testdata/objects.yaml"); err == nil || out.Len() > 0 {
		t.Errorf("%v, and %q", err, out.String())
	}
}
