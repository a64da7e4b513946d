package workload_test

import (
	"testing"

	"github.com/configstamp/configstamp/internal/workload"
)

func TestHowARefIsNamed(t *testing.T) {
	for _, c := range []struct{ kind, logged, said string }{
		{"Deployment", "deployments.apps shop/web-app", "Deployment web-app"},
		{"Pod", "pods shop/web-app", "Pod web-app"},
		{"Rollout", "rollouts.argoproj.io shop/web-app", "Rollout web-app"},
	} {
		ref := workload.Ref{Kind: kindOf(t, c.kind), Namespace: "shop", Name: "web-app"}
		if logged, said := ref.String(), ref.People(); logged != c.logged || said != c.said {
			t.Errorf("logs say %q, events %q; want %q and %q", logged, said, c.logged, c.said)
		}
	}
}
