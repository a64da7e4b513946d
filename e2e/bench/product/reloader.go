package product

import (
	"context"

	"github.com/configstamp/configstamp/e2e/bench/lab"
	"github.com/configstamp/configstamp/e2e/harness"
)

// reloader is stakater/Reloader: one process, no webhook, no memory of what was.
func reloader() *Adapter {
	return &Adapter{
		Name:        "reloader",
		Forgets:     true,
		Annotations: map[string]string{"reloader.stakater.com/auto": "true"},
		Install: func(ctx context.Context, l *lab.Lab, _ harness.URLs) (string, error) {
			return administrator(ctx, l, "reloader")
		},
		Roles: func(Options) []Role {
			return []Role{{Name: "reloader", Args: func(Place) []string { return nil }}}
		},
	}
}
