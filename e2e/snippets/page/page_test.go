package page

import (
	"reflect"
	"strings"
	"testing"
)

const text = "# A page\n\n```sh\nkubectl get pods\n```\n<!-- printed above -->\n```text\nNAME   READY\nweb-…  1/1\n```\n" +
	"- a list\n\n  <!-- file: values.yaml -->\n  ```yaml\n  a: 1\n  ```\n\n<!-- not run: needs Docker -->\n\n<!-- edit: s/a/b/ -->\n```sh\nkind\n```\n"

func TestRead_FindsSnippetsAndHowToTakeThem(t *testing.T) {
	got, err := Read(text)
	if err != nil {
		t.Fatal(err)
	}
	want := []Snippet{
		{Line: 3, Language: "sh", Text: "kubectl get pods\n"},
		{Line: 7, Language: "text", Text: "NAME   READY\nweb-…  1/1\n", Printed: true},
		{Line: 14, Language: "yaml", Text: "a: 1\n", File: "values.yaml"},
		{Line: 21, Language: "sh", Text: "kind\n", NotRun: "needs Docker", Edit: "s/a/b/"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("found %+v\nwant  %+v", got, want)
	}
}

func TestRead_RefusesWhatIsHalf(t *testing.T) {
	for _, half := range []string{"```sh\nkubectl\n", "<!-- not run: why -->\nno snippet\n"} {
		if _, err := Read(half); err == nil {
			t.Errorf("%q is taken", half)
		}
	}
}

func TestMissing_FindsLinesInTheirOrder(t *testing.T) {
	snippets, err := Read(text)
	if err != nil {
		t.Fatal(err)
	}
	for printed, want := range map[string]string{
		"NAME                READY\nweb-app-5c-x   1/1\nother 1/1\n": "",
		"before\nNAME READY\nnoise\nweb-app 1/1":                     "",
		"web-app 1/1\nNAME READY\n":                                  "web-…  1/1",
		"NAME READY STATUS\nweb-app 1/1":                             "NAME   READY",
	} {
		if got := snippets[1].Missing(printed); got != want {
			t.Errorf("%q: missing %q, want %q", strings.ReplaceAll(printed, "\n", "|"), got, want)
		}
	}
}
