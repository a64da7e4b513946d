package order

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/inspect"
)

// edit is what to write into annotations; nil values take away.
type edit map[string]*string

// tries is how often an edit is decided anew because somebody else was faster.
const tries = 5

// annotate changes annotations of an object: decide is given those that it has, and answers
// what to write. It is stored only if nobody else has changed the object meanwhile; else it
// is decided again.
func (o *Orders) annotate(ctx context.Context, of inspect.Target, decide func(*inspect.Metadata) (edit, Did)) Did {
	var err error
	for range tries {
		var meta *inspect.Metadata
		if meta, err = o.Cluster.Metadata(ctx, of); err != nil {
			break
		}
		change, did := decide(meta)
		if len(change) == 0 || o.DryRun == Client {
			return did
		}
		var warnings []string
		if warnings, err = o.Cluster.Patch(ctx, inspect.Patch{Of: of, Body: body(meta.Version, change), Manager: Manager, Dry: o.DryRun == Server}); err == nil {
			did.Warnings = warnings
			return did
		}
		if !inspect.IsConflict(err) {
			break
		}
	}
	return o.did(of).refused(of, err)
}

// body is the merge patch of an edit.
func body(version string, change edit) []byte {
	metadata := map[string]any{"annotations": change}
	if version != "" {
		metadata["resourceVersion"] = version
	}
	text, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		panic(err) // strings always can be written
	}
	return text
}

// of writes one annotation of an edit as kubectl annotate has it: key=value, or key-.
func (e edit) of(key string) string {
	if !slices.Contains(slices.Collect(maps.Keys(e)), key) {
		return ""
	}
	if value := e[key]; value != nil {
		return key + "=" + *value
	}
	return key + "-"
}
