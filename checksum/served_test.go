package checksum_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/reason"
)

func namespaceOf(inject string, annotations map[string]string) checksum.Namespace {
	meta := metav1.ObjectMeta{Annotations: annotations}
	if inject != "" {
		meta.Labels = map[string]string{"configstamp.dev/inject": inject}
	}
	return checksum.NamespaceOf(&meta, checksum.OptInLabelled)
}

func TestServed(t *testing.T) {
	in, out := namespaceOf("enabled", nil), namespaceOf("", nil)
	reloader := checksum.Translate([]checksum.Dialect{checksum.Reloader}, "shop", map[string]string{"reloader.stakater.com/auto": "true"}, nil)
	silent := checksum.Translate([]checksum.Dialect{checksum.Reloader}, "shop", map[string]string{"reloader.stakater.com/auto": "false"}, nil)
	for about, c := range map[string]struct {
		candidate checksum.Candidate
		namespace checksum.Namespace
		want      reason.Reason
	}{
		"its Namespace opts it in":                           {checksum.Candidate{}, in, reason.NoReason},
		"nothing opts it in":                                 {checksum.Candidate{}, out, reason.OptedOut},
		"nothing is known of its Namespace":                  {checksum.Candidate{}, checksum.Namespace{}, reason.OptedOut},
		"its Namespace says disabled":                        {checksum.Candidate{}, namespaceOf("disabled", nil), reason.OptedOut},
		"its Namespace says something else":                  {checksum.Candidate{}, namespaceOf("enable", nil), reason.OptedOut},
		"its own label opts it in":                           {checksum.Candidate{Inject: "enabled"}, out, reason.NoReason},
		"its own label opts it out":                          {checksum.Candidate{Inject: "disabled"}, in, reason.OptedOut},
		"its own label says something else":                  {checksum.Candidate{Inject: "true"}, out, reason.OptedOut},
		"its own label says something else, in one opted in": {checksum.Candidate{Inject: "true"}, in, reason.NoReason},
		"a dialect opts it in":                               {checksum.Candidate{Foreign: reloader}, out, reason.NoReason},
		"a dialect does not":                                 {checksum.Candidate{Foreign: silent}, out, reason.OptedOut},
		"its label overrules the dialect":                    {checksum.Candidate{Foreign: reloader, Inject: "disabled"}, out, reason.OptedOut},
		"its owner makes its template":                       {checksum.Candidate{Inject: "enabled", Owned: true}, in, reason.Owned},
		"it is opted out and owned":                          {checksum.Candidate{Inject: "disabled", Owned: true}, in, reason.OptedOut},
		"it is being deleted":                                {checksum.Candidate{Inject: "enabled", Ending: true}, in, reason.OptedOut},
		"its Namespace is excluded":                          {checksum.Candidate{Inject: "enabled", Excluded: true}, in, reason.OptedOut},
	} {
		served, why := checksum.Served(c.candidate, c.namespace)
		if why != c.want || served != (c.want == reason.NoReason) {
			t.Errorf("%s: served: %t, %q; want %q", about, served, why, c.want)
		}
		declined, declines := c.candidate.Declines()
		if want := c.candidate.Inject == "disabled" || c.candidate.Owned || c.candidate.Ending || c.candidate.Excluded; declines != want || declines && declined != c.want {
			t.Errorf("%s: declines: %t, %q", about, declines, declined)
		}
	}
}

// Each setting with each value of the two labels, in the order of values: + is served, - is not.
func TestServed_WithEachOptIn(t *testing.T) {
	values := []string{"", "enabled", "disabled", "disable"}
	for optIn, want := range map[checksum.OptIn]string{
		checksum.OptInLabelled: "-+-- ++-+ -+-- -+--", // workloads of a Namespace with each of the values
		checksum.OptInAll:      "++-+ ++-+ -+-- ++-+",
		"":                     "-+-- ++-+ -+-- -+--",
	} {
		got := ""
		for _, onNamespace := range values {
			n := checksum.NamespaceOf(&metav1.ObjectMeta{Labels: map[string]string{"configstamp.dev/inject": onNamespace}}, optIn)
			for _, inject := range values {
				if served, _ := checksum.Served(checksum.Candidate{Inject: inject}, n); served {
					got += "+"
				} else {
					got += "-"
				}
				if served, _ := checksum.Served(checksum.Candidate{Inject: inject, Excluded: true}, n); served {
					t.Errorf("%q, Namespace %q, workload %q: served, although excluded", optIn, onNamespace, inject)
				}
			}
			got += " "
		}
		if got != want+" " {
			t.Errorf("%q: served %q, want %q", optIn, got, want)
		}
	}
}

func TestOptIn(t *testing.T) {
	for text, excluded := range map[string]int{"labelled": 0, "all": 2} {
		if o, err := checksum.ParseOptIn(text); err != nil || string(o) != text || len(o.Excluded()) != excluded {
			t.Errorf("%s: %q, %v; %v", text, o, o.Excluded(), err)
		}
	}
	if _, err := checksum.ParseOptIn("everything"); err == nil {
		t.Error("an unknown word is no error")
	}
}
