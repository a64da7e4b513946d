package checksum_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configstamp/configstamp/checksum"
)

func namespaceOf(inject string, annotations map[string]string) checksum.Namespace {
	meta := metav1.ObjectMeta{Annotations: annotations}
	if inject != "" {
		meta.Labels = map[string]string{"configstamp.dev/inject": inject}
	}
	return checksum.NamespaceOf(&meta)
}

func TestServed(t *testing.T) {
	in, out := namespaceOf("enabled", nil), namespaceOf("", nil)
	reloader := checksum.Translate([]checksum.Dialect{checksum.Reloader}, "shop", map[string]string{"reloader.stakater.com/auto": "true"}, nil)
	silent := checksum.Translate([]checksum.Dialect{checksum.Reloader}, "shop", map[string]string{"reloader.stakater.com/auto": "false"}, nil)
	for about, c := range map[string]struct {
		candidate checksum.Candidate
		namespace checksum.Namespace
		want      checksum.Reason
	}{
		"its Namespace opts it in":                           {checksum.Candidate{}, in, checksum.NoReason},
		"nothing opts it in":                                 {checksum.Candidate{}, out, checksum.OptedOut},
		"nothing is known of its Namespace":                  {checksum.Candidate{}, checksum.Namespace{}, checksum.OptedOut},
		"its Namespace says disabled":                        {checksum.Candidate{}, namespaceOf("disabled", nil), checksum.OptedOut},
		"its Namespace says something else":                  {checksum.Candidate{}, namespaceOf("enable", nil), checksum.OptedOut},
		"its own label opts it in":                           {checksum.Candidate{Inject: "enabled"}, out, checksum.NoReason},
		"its own label opts it out":                          {checksum.Candidate{Inject: "disabled"}, in, checksum.OptedOut},
		"its own label says something else":                  {checksum.Candidate{Inject: "true"}, out, checksum.OptedOut},
		"its own label says something else, in one opted in": {checksum.Candidate{Inject: "true"}, in, checksum.NoReason},
		"a dialect opts it in":                               {checksum.Candidate{Foreign: reloader}, out, checksum.NoReason},
		"a dialect does not":                                 {checksum.Candidate{Foreign: silent}, out, checksum.OptedOut},
		"its label overrules the dialect":                    {checksum.Candidate{Foreign: reloader, Inject: "disabled"}, out, checksum.OptedOut},
		"its owner makes its template":                       {checksum.Candidate{Inject: "enabled", Owned: true}, in, checksum.Owned},
		"it is opted out and owned":                          {checksum.Candidate{Inject: "disabled", Owned: true}, in, checksum.OptedOut},
		"it is being deleted":                                {checksum.Candidate{Inject: "enabled", Ending: true}, in, checksum.OptedOut},
		"its Namespace is excluded":                          {checksum.Candidate{Inject: "enabled", Excluded: true}, in, checksum.OptedOut},
	} {
		served, why := checksum.Served(c.candidate, c.namespace)
		if why != c.want || served != (c.want == checksum.NoReason) {
			t.Errorf("%s: served: %t, %q; want %q", about, served, why, c.want)
		}
		declined, declines := c.candidate.Declines()
		if want := c.candidate.Inject == "disabled" || c.candidate.Owned || c.candidate.Ending || c.candidate.Excluded; declines != want || declines && declined != c.want {
			t.Errorf("%s: declines: %t, %q", about, declines, declined)
		}
	}
}
