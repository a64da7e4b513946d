package lab

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestWhatProcSays(t *testing.T) {
	const status = "Name:\tconfigstamp\nVmPeak:\t  999 kB\nVmHWM:\t   43852 kB\nVmRSS:\t 1 kB\n"
	if got, err := statusKB(status, "VmHWM"); err != nil || got != 43852 {
		t.Errorf("VmHWM: %v, %v", got, err)
	}
	for _, text := range []string{"", "VmHWM:\t1 MB\n", "VmHWM:\tx kB\n"} {
		if got, err := statusKB(text, "VmHWM"); err == nil {
			t.Errorf("%q is read as %v", text, got)
		}
	}
	// user 350, system 50 ticks; the name holds a bracket and blanks.
	const stat = "4711 (a) b (c) S 1 4711 4711 0 -1 4194304 100 0 0 0 350 50 7 8 20 0 9 0 100 1000 10"
	if got, err := statSeconds(stat); err != nil || got != 4 {
		t.Errorf("CPU: %v, %v", got, err)
	}
	for _, text := range []string{"", "1 x S 1", "1 (x) S 1 2 3", "1 (x) S 1 1 1 0 -1 1 1 0 0 0 a b 7"} {
		if got, err := statSeconds(text); err == nil {
			t.Errorf("%q is read as %v", text, got)
		}
	}
}

func TestMetricsAreRead(t *testing.T) {
	values := ParseMetrics("# HELP a b\n# TYPE a counter\na 1\na{x=\"1\"} 2\na{x=\"2\",y=\"z z\"} 3.5e2\nbroken\nb NaNN\n")
	if len(values) != 3 || values["a"] != 1 || values[`a{x="2",y="z z"}`] != 350 {
		t.Errorf("%v", values)
	}
	if sum := Sum(values, "a", "x="); sum != 352 {
		t.Errorf("sum %v, want 352", sum)
	}
	if sum := Sum(values, "a"); sum != 353 {
		t.Errorf("sum %v, want 353", sum)
	}
}

func TestTheFloorAnswersWithTheUIDOfTheRequest(t *testing.T) {
	uid, ok := requestUID([]byte(`{"kind":"AdmissionReview","request":{"uid":"one","object":{"metadata":{"uid":"two"}}}}`))
	if !ok || string(uid) != "one" {
		t.Errorf("%s, %t", uid, ok)
	}
	for _, text := range []string{``, `{"uid":`, `{"uid":"x`} {
		if _, ok := requestUID([]byte(text)); ok {
			t.Errorf("a uid in %q", text)
		}
	}
}

func TestSecretsDifferFromEachOtherAndNotFromRunToRun(t *testing.T) {
	seen := map[string]bool{}
	for i := range uint64(70_000) {
		seen[string(noise(i, 16))] = true
	}
	if len(seen) != 70_000 {
		t.Errorf("%d different ones of 70,000", len(seen))
	}
	if size := len(noise(1, 20<<10)); size != 20<<10 {
		t.Errorf("%d bytes", size)
	}
}

func TestTheContinueTokenOfAPageIsFound(t *testing.T) {
	page := func(token string) []byte {
		list := &corev1.SecretList{ListMeta: metav1.ListMeta{ResourceVersion: "7", Continue: token}, Items: []corev1.Secret{
			{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string][]byte{"password": make([]byte, 8<<10)}},
		}}
		raw, err := list.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		unknown := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: "SecretList"}, Raw: raw}
		whole, err := unknown.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		return append([]byte("k8s\x00"), whole...)
	}
	for _, token := range []string{"", "more", strings.Repeat("long", 100)} {
		whole := page(token)
		for _, head := range [][]byte{whole, whole[:4<<10]} {
			if got, err := continueToken(head); err != nil || got != token {
				t.Errorf("%d bytes: got %q, %v, want %q", len(head), got, err, token)
			}
		}
	}
	for _, text := range []string{"", "k8s\x00", `{"kind":"SecretList"}`} {
		if _, err := continueToken([]byte(text)); err == nil {
			t.Errorf("%q is taken for a list", text)
		}
	}
}
