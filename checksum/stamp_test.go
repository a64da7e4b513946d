package checksum_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/configstamp/configstamp/checksum"
)

func TestStampKey(t *testing.T) {
	long := func(tail string) string {
		return strings.Repeat("a", 100) + "." + strings.Repeat("b", 152-len(tail)) + tail
	}
	for about, c := range map[string]struct{ name, want string }{
		"a short name stands as it is":            {"web-message", "web-message"},
		"63 characters fit":                       {strings.Repeat("n", 63), strings.Repeat("n", 63)},
		"64 characters are shortened":             {strings.Repeat("n", 64), strings.Repeat("n", 40) + "_ce068a195ab380a813c713"},
		"253 characters are shortened":            {long(""), strings.Repeat("a", 40) + "_"},
		"a cut may fall behind a dot or a hyphen": {strings.Repeat("n", 38) + ".-" + strings.Repeat("m", 60), strings.Repeat("n", 38) + ".-_"},
	} {
		t.Run(about, func(t *testing.T) {
			for _, kind := range checksum.Kinds() {
				got := checksum.StampKey(checksum.Source{Kind: kind, Name: c.name})
				prefix := string(kind) + ".configstamp.dev/"
				if len(c.name) <= 63 && got != prefix+c.want {
					t.Errorf("%s, want %s", got, prefix+c.want)
				}
				if len(c.name) > 63 && (!strings.HasPrefix(got, prefix+c.want) || len(got) != len(prefix)+63) {
					t.Errorf("%s, want %s and a hash, 63 characters", got, prefix+c.want)
				}
				if wrong := validation.IsQualifiedName(got); len(wrong) > 0 {
					t.Errorf("%s is no annotation: %v", got, wrong)
				}
				if source, ok := checksum.StampedSource(got); ok != (len(c.name) <= 63) || ok && source != (checksum.Source{Kind: kind, Name: c.name}) {
					t.Errorf("%s is read as the stamp of %s (%t)", got, source, ok)
				}
				if !checksum.IsStampKey(got) {
					t.Errorf("%s is not known as a stamp", got)
				}
			}
		})
	}
}

func TestNoTwoSourcesShareAStamp(t *testing.T) {
	head := strings.Repeat("a", 62)
	names := []string{
		"my-config", "my.config", "myconfig", // peers.md, 4
		head, head + "b", head + "c", head + "bb", head + "bc",
		strings.Repeat("a", 253), strings.Repeat("a", 252) + "b", "b" + strings.Repeat("a", 252),
		strings.Repeat("a", 40), strings.Repeat("a", 40) + "-ce068a195ab380a813c713",
	}
	seen := map[string]checksum.Source{}
	for _, kind := range checksum.Kinds() {
		for _, name := range names {
			source := checksum.Source{Kind: kind, Name: name}
			stamp := checksum.StampKey(source)
			if other, ok := seen[stamp]; ok {
				t.Errorf("%s and %s share %s", source, other, stamp)
			}
			seen[stamp] = source
			// A shortened name is no name that another object could have.
			if _, short, _ := strings.Cut(stamp, "/"); len(name) > 63 && (checksum.Source{Kind: kind, Name: short}).Nameable() {
				t.Errorf("%s is shortened to %s, which an object may be called", source, short)
			}
		}
	}
}

func TestStampsPicksOurs(t *testing.T) {
	got := checksum.Stamps(map[string]string{
		"configmap.configstamp.dev/a":  "1",
		"secret.configstamp.dev/b":     "2",
		"secret.configstamp.dev/":      "3",
		"configstamp.dev/baseline":     "4",
		"checksum/config":              "5",
		"xsecret.configstamp.dev/c":    "6",
		"secret.configstamp.dev.evil/": "7",
		"Secret.configstamp.dev/d":     "8",
		"a.secret.configstamp.dev/e":   "9",

		"secretproviderclass.configstamp.dev/f": "10",
	})
	want := map[string]string{"configmap.configstamp.dev/a": "1", "secret.configstamp.dev/b": "2", "secret.configstamp.dev/": "3", "secretproviderclass.configstamp.dev/f": "10"}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestParseBaseline(t *testing.T) {
	for about, c := range map[string]struct {
		text string
		want map[checksum.Source]string
	}{
		"nothing":                     {"", nil},
		"null":                        {"null", nil},
		"an empty object":             {"{}", nil},
		"each kind":                   {`{"configmap/web-message":"v1:absent","secret/db-password":"x","secretproviderclass/web-vault":"y"}`, map[checksum.Source]string{message: "v1:absent", password: "x", vault: "y"}},
		"a kind of a newer version":   {`{"configmap/web-message":"x","volume/v":"y"}`, map[checksum.Source]string{message: "x"}},
		"names that no object has":    {`{"configmap/":"x","secret/A":"y","configmap":"z","secret/a/b":"w","Secret/a":"v","secret/ a":"u","configmap/a..b":"t","secret/\u0000":"s","/":"r","":"q","secret/` + strings.Repeat("a", 254) + `":"p"}`, nil},
		"a name of 253 characters":    {`{"secret/` + strings.Repeat("a", 253) + `":"x"}`, map[checksum.Source]string{{Kind: checksum.Secret, Name: strings.Repeat("a", 253)}: "x"}},
		"a name twice":                {`{"secret/a":"1","secret\/a":"2"}`, map[checksum.Source]string{{Kind: checksum.Secret, Name: "a"}: "2"}},
		"a value that is null":        {`{"secret/db-password":null}`, map[checksum.Source]string{password: ""}},
		"a value that is no text":     {`{"secret/db-password":"\ud800"}`, map[checksum.Source]string{password: "\ufffd"}},
		"blanks between, as by hand":  {"{ \"secret/db-password\" :\n\"x\" }", map[checksum.Source]string{password: "x"}},
		"a value of any text is kept": {`{"secret/db-password":"\u0000<&é"}`, map[checksum.Source]string{password: "\x00<&é"}},
	} {
		t.Run(about, func(t *testing.T) {
			got, err := checksum.ParseBaseline(c.text)
			if err != nil || !maps.Equal(got, c.want) {
				t.Fatalf("got %v, %v; want %v", got, err, c.want)
			}
			again, err := checksum.ParseBaseline(checksum.FormatBaseline(got))
			if err != nil || !maps.Equal(got, again) {
				t.Errorf("written and read again it is %v, %v", again, err)
			}
		})
	}
}

func TestParseBaselineErrsWithoutQuoting(t *testing.T) {
	for _, text := range []string{"{", "[]", `"hunter2"`, `{"secret/a":["hunter2"]}`, `{"secret/a":{"b":"hunter2"}}`, "hunter2", `{"secret/a":4711}`} {
		baseline, err := checksum.ParseBaseline(text)
		if err == nil || baseline != nil {
			t.Errorf("%s: read as %v", text, baseline)
			continue
		}
		if strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "4711") {
			t.Errorf("the error quotes the annotation: %v", err)
		}
		if !strings.Contains(err.Error(), checksum.BaselineAnnotation) {
			t.Errorf("the error does not name the annotation: %v", err)
		}
	}
}

func TestFormatBaselineIsTheDocumentedJSON(t *testing.T) {
	if got := checksum.FormatBaseline(nil); got != "" {
		t.Errorf("no baseline is written as %q", got)
	}
	if got := checksum.FormatBaseline(map[checksum.Source]string{}); got != "{}" {
		t.Errorf("an empty baseline is written as %q", got)
	}
	want := `{"configmap/a":"1","configmap/web-message":"v1:absent","secret/db-password":"3"}`
	for range 20 {
		got := checksum.FormatBaseline(map[checksum.Source]string{password: "3", message: "v1:absent", {Kind: checksum.ConfigMap, Name: "a"}: "1"})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	}
}
