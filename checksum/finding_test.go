package checksum_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/reason"
)

// Of names in only the exact ones are told of that nothing else of the workload names.
func TestPolicy_Unreferenced(t *testing.T) {
	const says = " is named by configstamp.dev/only, but nothing here references it; correct or remove the name"
	references := []checksum.Reference{envFrom(message), envFrom(password)}
	reloader := checksum.Translate([]checksum.Dialect{checksum.Reloader}, namespace, map[string]string{"configmap.reloader.stakater.com/reload": "by-reloader"}, nil)
	policy := func(levels ...checksum.Level) *checksum.Policy {
		policy := checksum.DefaultPolicy().With(levels...).Translated(reloader, func(checksum.Kind) []string { return nil })
		return &policy
	}
	for only, want := range map[string]string{
		"configmap/web-message":                 "",
		"configmap/typo,secret/*":               "configmap/typo" + says,
		"secret/none-*":                         "", // a glob may well match nothing yet
		"configmap/routes":                      "", // also names it
		"configmap/by-reloader":                 "",
		"configmap/":                            "", // it cannot be read, which is told of
		"secret/web-message,secret/db-password": "secret/web-message" + says,
	} {
		said := ""
		for _, finding := range policy(onWorkload("only", only), onWorkload("also", "configmap/routes")).Unreferenced(references) {
			said += finding.String()
		}
		if said != want {
			t.Errorf("%s: %q, want %q", only, said, want)
		}
	}
	onNamespace := checksum.Level{Origin: checksum.OfNamespace, Annotations: onWorkload("only", "configmap/typo").Annotations}
	if found := slices.Concat(policy().Unreferenced(references), policy(onNamespace).Unreferenced(references)); found != nil {
		t.Errorf("without a setting of the workload: %v", found)
	}
}

func TestNamespacesTellOfWhatStandsThere(t *testing.T) {
	n := checksum.NamespaceOf(&metav1.ObjectMeta{
		Labels:      map[string]string{"kubernetes.io/metadata.name": "shop"},
		Annotations: map[string]string{"configstamp.dev/mode": "dry-run", "example.com/pause": "secret"},
	}, checksum.OptInLabelled)
	if len(n.Findings) != 1 || n.Findings[0].Reason != reason.UnreadableSetting {
		t.Errorf("%v", n.Findings)
	}
	if plain := checksum.NamespaceOf(&metav1.ObjectMeta{Labels: map[string]string{"a": "b"}}, checksum.OptInLabelled); plain.Findings != nil {
		t.Errorf("%v", plain.Findings)
	}
}

// The platform makes these a moment after the namespace: nobody has to be told, and no
// roll follows.
func TestWhatThePlatformMakesIsNeitherMissingNorAChange(t *testing.T) {
	root := checksum.Source{Kind: checksum.ConfigMap, Name: "kube-root-ca.crt"}
	there := checksum.ContentOfConfigMap(&corev1.ConfigMap{Data: map[string]string{"ca.crt": "x"}})
	mounted := checksum.Reference{Source: root, Use: checksum.Live, All: true}
	for about, c := range map[string]struct {
		policy     checksum.Policy
		references []checksum.Reference
	}{
		"mounted":                       {checksum.DefaultPolicy(root), []checksum.Reference{mounted}},
		"mounted, and not ignored":      {checksum.DefaultPolicy(), []checksum.Reference{mounted}},
		"named in also":                 {checksum.DefaultPolicy(root).With(onWorkload("also", root.String())), nil},
		"mounted, and named in also":    {checksum.DefaultPolicy(root).With(onWorkload("also", root.String())), []checksum.Reference{mounted}},
		"of an optional reference, too": {checksum.DefaultPolicy(), []checksum.Reference{{Source: root, Use: checksum.Live, All: true, Optional: true}}},
	} {
		selections := checksum.Selections(c.references, c.policy)
		made := decide(ring, admissionCase{Namespace: namespace, Create: true, Fresh: true, Policy: c.policy, Selections: selections,
			Content: func(checksum.Source) *checksum.Content { return nil }})
		if len(made.Findings) > 0 || len(made.Records.Stamps) > 0 {
			t.Errorf("%s: at its creation %v, %v", about, made.Findings, made.Records)
		}
		before := ring.Review(namespace, &c.policy, selections, made.Records, func(checksum.Source) *checksum.Content { return nil })
		after := ring.Review(namespace, &c.policy, selections, made.Records, func(checksum.Source) *checksum.Content { return there })
		if len(before.Untrue)+len(before.ToRecord)+len(after.Untrue) > 0 {
			t.Errorf("%s: before it comes %+v, then %+v", about, before, after)
		}
	}
}
