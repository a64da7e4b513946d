package controller

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"github.com/configstamp/configstamp/internal/refusal"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

// plainAPI is an api whose errors repeat no word of the API server's, so that none
// comes into an event or the log.
type plainAPI struct{ api api }

// get implements api.
func (p plainAPI) get(ctx context.Context, user workload.Ref) ([]byte, error) {
	body, err := p.api.get(ctx, user)
	return body, refusal.Plain(err)
}

// readmit implements api.
func (p plainAPI) readmit(ctx context.Context, user workload.Ref, manager string, dryRun bool) ([]byte, []string, error) {
	body, warnings, err := p.api.readmit(ctx, user, manager, dryRun)
	return body, warnings, refusal.Plain(err)
}

// pods implements api.
func (p plainAPI) pods(ctx context.Context, namespace, selector string) ([]workload.Pod, error) {
	pods, err := p.api.pods(ctx, namespace, selector)
	return pods, refusal.Plain(err)
}

// nodeReady implements api.
func (p plainAPI) nodeReady(ctx context.Context, name string) (bool, error) {
	ready, err := p.api.nodeReady(ctx, name)
	return ready, refusal.Plain(err)
}

// sourceUID implements api.
func (p plainAPI) sourceUID(ctx context.Context, at rollout.SourceRef) (types.UID, error) {
	uid, err := p.api.sourceUID(ctx, at)
	return uid, refusal.Plain(err)
}
