package revisions

import (
	"fmt"
	"slices"
	"testing"

	"github.com/configstamp/configstamp/internal/workload"
)

// template is a pod template with an image, and some stamps.
func template(image, stamps string) string {
	return fmt.Sprintf(`"template":{"metadata":{"labels":{"app":"api"},"annotations":{%s}},"spec":{"containers":[{"name":"app","image":%q}]}}`, stamps, image)
}

func TestLast(t *testing.T) {
	t.Parallel()
	const old, edited = `"configmap.configstamp.dev/web":"v1"`, `"configmap.configstamp.dev/web":"v2"`
	deployments, _ := workload.Builtin().Find("apps", "deployments")
	for name, c := range map[string]struct {
		is   string
		kept []string // templates, the newest first
		want []string
	}{
		"an edit":                       {template("app:1", edited), []string{template("app:1", edited), template("app:1", old)}, []string{"web"}},
		"an edit before it":             {template("app:1", edited), []string{template("app:1", edited), template("app:1", edited), template("app:1", old)}, nil},
		"a release":                     {template("app:2", old), []string{template("app:2", old), template("app:1", old)}, nil},
		"a release with an edit":        {template("app:2", edited), []string{template("app:2", edited), template("app:1", old)}, nil},
		"a release, not yet a revision": {template("app:2", edited), []string{template("app:1", edited), template("app:1", old)}, nil},
		"the first rollout":             {template("app:1", old), []string{template("app:1", old)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var kept []*workload.Revision
			for i, text := range c.kept {
				revision, err := workload.DecodeRevision(fmt.Appendf(nil, `{"metadata":{"name":"api-%d","annotations":{"deployment.kubernetes.io/revision":"%d"}},"spec":{%s}}`, i, len(c.kept)-i, text))
				if err != nil {
					t.Fatal(err)
				}
				kept = append([]*workload.Revision{revision}, kept...) // the API server keeps no order
			}
			raw := fmt.Appendf(nil, `{"metadata":{"name":"api","namespace":"shop","uid":"1"},"spec":{"selector":{"matchLabels":{"app":"api"}},%s}}`, c.is)
			object, err := deployments.Decode(raw)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, source := range last(object, kept).Sources {
				names = append(names, source.Name)
			}
			if !slices.Equal(names, c.want) {
				t.Errorf("got %v, want %v", names, c.want)
			}
		})
	}
}
