package main

import "testing"

func TestQuote(t *testing.T) {
	for in, want := range map[string]string{
		"/a/b-c.d_e":  "/a/b-c.d_e",
		"https://a:1": "https://a:1",
		"/a b":        "'/a b'",
		"":            "''",
		"a'b":         `'a'\''b'`,
		"$(x)":        "'$(x)'",
		"a;b":         "'a;b'",
	} {
		if got := quote(in); got != want {
			t.Errorf("%q is quoted as %s, want %s", in, got, want)
		}
	}
}
