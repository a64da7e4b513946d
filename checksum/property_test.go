package checksum_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configstamp/configstamp/checksum"
)

const rounds = 300

// awkward are names and values that a framing without lengths would mix up.
var awkward = []string{"", "a", "b", "ab", "a=1", "a=1;b=2", "1;b=2", "a:", "\x00", "a\x00", "\x00a", "\x01", "ä", "a\u0308", ",", "\n", "null", strings.Repeat("a", 300)}

func awkwardContent(chance *rand.Rand) bytesOf {
	content := bytesOf{}
	for range chance.IntN(4) {
		content[awkward[chance.IntN(len(awkward))]] = awkward[chance.IntN(len(awkward))]
	}
	return content
}

// randomSelection selects all, or some of the awkward names.
func randomSelection(t *testing.T, chance *rand.Rand, source checksum.Source) checksum.Selection {
	t.Helper()
	r := checksum.Reference{Source: source, Use: checksum.Startup, Optional: true}
	if r.All = chance.IntN(2) == 0; !r.All {
		for range 1 + chance.IntN(4) {
			r.Keys = append(r.Keys, awkward[chance.IntN(len(awkward))])
		}
	}
	return selected(t, checksum.DefaultPolicy(), r)
}

// Two digests are equal when, and only when, everything that must count is.
func TestADigestIsEqualExactlyWhenWhatIsSelectedIs(t *testing.T) {
	chance := seeded(t)
	seenBy := func(s checksum.Selection, content bytesOf) string {
		if s.All {
			return fmt.Sprintf("all %q", content)
		}
		text := fmt.Sprintf("%q", s.Keys)
		for _, name := range s.Keys {
			value, ok := content[name]
			text += fmt.Sprintf("%v%q", ok, value)
		}
		return text
	}
	digests, meanings := map[string]string{}, map[string]string{}
	for range 10 * rounds {
		source := checksum.Source{Kind: []checksum.Kind{checksum.ConfigMap, checksum.Secret}[chance.IntN(2)], Name: []string{"a", "a.b", "b", "a-b"}[chance.IntN(4)]}
		in := []string{"a", "b", "ab"}[chance.IntN(3)]
		s, content := randomSelection(t, chance, source), awkwardContent(chance)
		meaning := fmt.Sprintf("%s in %s: %s", source, in, seenBy(s, content))
		value := ring.Digest(in, s, content.content())
		if other, ok := digests[meaning]; ok && other != value {
			t.Fatalf("%s: two digests", meaning)
		}
		if other, ok := meanings[value]; ok && other != meaning {
			t.Fatalf("one digest for\n%s, and\n%s", other, meaning)
		}
		digests[meaning], meanings[value] = value, meaning
	}
	if len(digests) < rounds {
		t.Errorf("only %d different contents: the property is hardly tested", len(digests))
	}
}

func TestWhereTheBytesStandDoesNotCount(t *testing.T) {
	chance := seeded(t)
	for range rounds {
		content := awkwardContent(chance)
		mixed := &corev1.ConfigMap{Data: map[string]string{}, BinaryData: map[string][]byte{}}
		secret := &corev1.Secret{Data: map[string][]byte{}}
		for name, value := range content {
			secret.Data[name] = []byte(value)
			if chance.IntN(2) == 0 {
				mixed.Data[name] = value
			} else {
				mixed.BinaryData[name] = []byte(value)
			}
		}
		s := randomSelection(t, chance, message)
		want := ring.Digest(namespace, s, content.content())
		if got := ring.Digest(namespace, s, checksum.ContentOfConfigMap(mixed)); got != want {
			t.Fatalf("%q: data or binaryData counts", content)
		}
		if got := ring.Digest(namespace, s, checksum.ContentOfSecret(secret)); got != want {
			t.Fatalf("%q: the API type of the same bytes counts", content)
		}
	}
}

func TestMetadataNeverCounts(t *testing.T) {
	yes := true
	full := metav1.ObjectMeta{
		Name: "other", Namespace: "other", UID: "u", ResourceVersion: "7", Generation: 3, CreationTimestamp: metav1.NewTime(time.Unix(1, 0)),
		Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"a": "b"}, Finalizers: []string{"f"},
		OwnerReferences: []metav1.OwnerReference{{Name: "o"}}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}},
	}
	cm := &corev1.ConfigMap{ObjectMeta: full, Immutable: &yes, Data: map[string]string{"a": "1"}}
	if !checksum.ContentOfConfigMap(cm).Equal(text("a", "1")) {
		t.Error("a ConfigMap's metadata counts")
	}
	secret := &corev1.Secret{ObjectMeta: full, Immutable: &yes, Type: "other", Data: map[string][]byte{"a": []byte("1")}}
	if !checksum.ContentOfSecret(secret).Equal(text("a", "1")) {
		t.Error("a Secret's metadata or type counts")
	}
}

func TestContentsAreEqualWhenEveryRuleSeesThemSo(t *testing.T) {
	for about, c := range map[string]struct {
		a, b *checksum.Content
		want bool
	}{
		"both absent":                       {nil, nil, true},
		"absent and empty":                  {nil, text(), false},
		"empty and absent":                  {text(), nil, false},
		"the same":                          {text("a", "1", "b", "2"), text("b", "2", "a", "1"), true},
		"another value":                     {text("a", "1"), text("a", "2"), false},
		"another name":                      {text("a", "1"), text("b", "1"), false},
		"one more":                          {text("a", "1"), text("a", "1", "b", ""), false},
		"binaryData, which env can not see": {text("a", "1"), blob("a", "1"), false},
	} {
		if got := c.a.Equal(c.b); got != c.want {
			t.Errorf("%s: %v", about, got)
		}
	}
}

func TestTheOrderOfReferencesDoesNotCount(t *testing.T) {
	chance := seeded(t)
	for range rounds {
		m := newModel(t, chance)
		want := checksum.Selections(m.references, m.policy)
		shuffled := slices.Clone(m.references)
		chance.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		got := checksum.Selections(shuffled, m.policy)
		if !slices.EqualFunc(want, got, func(a, b checksum.Selection) bool { return line(a) == line(b) && a.ID() == b.ID() }) {
			t.Fatalf("%v gives %v, shuffled %v", m.references, want, got)
		}
	}
}
