package source

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/configstamp/configstamp/checksum"
)

// at makes the object that a write of value at version gives.
func at(version, name, value string) *object {
	return (&condenser{}).object(&metav1.ObjectMeta{Namespace: "shop", Name: name, ResourceVersion: version}, contentOf(map[string]string{"key": value}))
}

func fill(s *sink, version string, objects ...*object) {
	var items []any
	for _, o := range objects {
		items = append(items, o)
	}
	_ = s.Replace(items, version)
}

func value(s *sink, name string) string {
	record, ok := s.get("shop", name)
	if !ok {
		return "absent"
	}
	for _, value := range []string{"old", "now", "new"} {
		if record.Content.Equal(contentOf(map[string]string{"key": value})) {
			return value
		}
	}
	return "unknown"
}

func TestSinkNeverGoesBack(t *testing.T) {
	cases := map[string]struct {
		events func(s *sink)
		want   string
		told   int
	}{
		"a newer event counts":                          {func(s *sink) { _ = s.Update(at("101", "web", "new")) }, "new", 1},
		"more digits are newer":                         {func(s *sink) { _ = s.Update(at("1000", "web", "new")) }, "new", 1},
		"an older event does not":                       {func(s *sink) { _ = s.Update(at("99", "web", "old")) }, "now", 0},
		"nor one of the version that was listed":        {func(s *sink) { _ = s.Add(at("100", "web", "old")) }, "now", 0},
		"a deletion counts":                             {func(s *sink) { _ = s.Delete(at("101", "web", "now")) }, "absent", 1},
		"an older deletion does not":                    {func(s *sink) { _ = s.Delete(at("99", "web", "now")) }, "now", 0},
		"deleted and created again":                     {func(s *sink) { _ = s.Delete(at("101", "web", "now")); _ = s.Add(at("102", "web", "now")) }, "now", 2},
		"an older event brings nothing deleted back":    {func(s *sink) { _ = s.Delete(at("103", "web", "now")); _ = s.Update(at("102", "web", "old")) }, "absent", 1},
		"an older deletion takes nothing created again": {func(s *sink) { _ = s.Update(at("103", "web", "new")); _ = s.Delete(at("102", "web", "now")) }, "new", 1},
		"a deletion of what is not there":               {func(s *sink) { _ = s.Delete(at("101", "none", "now")) }, "now", 0},
		"a replacement is the truth":                    {func(s *sink) { fill(s, "110", at("105", "web", "new")) }, "new", 1},
		"also when versions went back":                  {func(s *sink) { fill(s, "50", at("40", "web", "old")) }, "old", 1},
		"and events go on from there":                   {func(s *sink) { fill(s, "50", at("40", "web", "old")); _ = s.Update(at("51", "web", "new")) }, "new", 2},
		"a replacement without it deletes":              {func(s *sink) { fill(s, "110") }, "absent", 1},
		"a replacement with the same tells nothing":     {func(s *sink) { fill(s, "110", at("105", "web", "now")) }, "now", 0},
		"versions that cannot be compared are new":      {func(s *sink) { _ = s.Update(at("x", "web", "new")) }, "new", 1},
		"objects of other types are passed over":        {func(s *sink) { _ = s.Update(&metav1.PartialObjectMetadata{}); _ = s.Bookmark("200") }, "now", 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			told := 0
			s := newSink(checksum.ConfigMap, clock.RealClock{}, func(string, checksum.Source, *checksum.Content) { told++ })
			fill(s, "100", at("90", "web", "now"))
			c.events(s)
			if got := value(s, "web"); got != c.want || told != c.told {
				t.Errorf("%s, told %d times; want %s, %d", got, told, c.want, c.told)
			}
			want := 1
			if c.want == "absent" {
				want = 0
			}
			if s.len() != want {
				t.Errorf("count %d, want %d", s.len(), want)
			}
		})
	}
}

func TestChecksumsArePrintedNowhere(t *testing.T) {
	o := at("1", "web", "hunter2")
	sum := fmt.Sprintf("%x", o.content.Entries[0].Sum[:4])
	decimal := strings.Trim(fmt.Sprint(o.content.Entries[0].Sum[:4]), "[]") //nolint:staticcheck // as %v would print it
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		for _, printed := range []any{o, o.record(), checksum.Contents{web: o.content}} {
			if text := fmt.Sprintf(format, printed); strings.Contains(text, sum) || strings.Contains(text, decimal) {
				t.Errorf("%s prints a checksum: %s", format, text)
			}
		}
	}
}

func TestInternerIsBounded(t *testing.T) {
	var i interner
	for n := range 3 * internedNames {
		if got := i.intern(strconv.Itoa(n)); got != strconv.Itoa(n) {
			t.Fatalf("%d became %s", n, got)
		}
	}
	if len(i.texts) > internedNames {
		t.Errorf("%d texts", len(i.texts))
	}
}
