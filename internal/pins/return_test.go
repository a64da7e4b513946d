package pins_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/configstamp/configstamp/internal/pins"
	"github.com/configstamp/configstamp/internal/workload"
)

// kept are revisions of a Deployment.
type kept []*workload.Revision

func (k kept) Of(context.Context, *workload.Kind, string, string, types.UID) ([]*workload.Revision, error) {
	return k, nil
}

// template is a pod template with an image, and some stamps.
func template(image, stamps string) string {
	return fmt.Sprintf(`"template":{"metadata":{"labels":{"app":"api"},"annotations":{%s}},"spec":{"containers":[{"name":"app","image":%q}]}}`, stamps, image)
}

func TestLastRoll(t *testing.T) {
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
			var revisions kept
			for i, text := range c.kept {
				revision, err := workload.DecodeRevision(fmt.Appendf(nil, `{"metadata":{"name":"api-%d","annotations":{"deployment.kubernetes.io/revision":"%d"}},"spec":{%s}}`, i, len(c.kept)-i, text))
				if err != nil {
					t.Fatal(err)
				}
				revisions = append(kept{revision}, revisions...) // the API server keeps no order
			}
			raw := fmt.Appendf(nil, `{"metadata":{"name":"api","namespace":"shop","uid":"1"},"spec":{"selector":{"matchLabels":{"app":"api"}},%s}}`, c.is)
			got, _, err := pins.LastRoll(t.Context(), revisions, deployments, "shop", raw)
			var names []string
			for _, source := range got {
				names = append(names, source.Name)
			}
			if err != nil || !slices.Equal(names, c.want) {
				t.Errorf("got %v, %v, want %v", names, err, c.want)
			}
		})
	}
}
