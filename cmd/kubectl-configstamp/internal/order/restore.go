package order

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/inspect"
	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/seen"
)

// Restore writes what a snapshot holds back into its source, as an edit by the user: the
// source keeps its own labels and annotations. now is what the source holds, read before;
// if somebody else has written it since, nothing is stored.
// f are the workloads that use it.
func (o *Orders) Restore(ctx context.Context, f *seen.Fleet, now, snapshot *corev1.ConfigMap) Did {
	of := inspect.OfSource(now.Namespace, checksum.Source{Kind: checksum.ConfigMap, Name: now.Name})
	did := o.did(of)
	if checksum.ContentOfConfigMap(now).SameEntries(checksum.ContentOfConfigMap(snapshot)) {
		return did.with(Unchanged, "it already holds what snapshot "+snapshot.Name+" holds")
	}
	did = did.with(Restored, "it holds what snapshot "+snapshot.Name+" of "+inspect.MadeAt(snapshot).Format(time.RFC3339)+" holds; "+whoRolls(f))
	did.Next = "kubectl configstamp status -n " + now.Namespace
	if now.Immutable != nil && *now.Immutable {
		did.Next = ""
		return did.with(Refused, "it is immutable")
	}
	if o.DryRun == Client {
		return did
	}
	body, err := restoring(now, snapshot)
	if err != nil {
		return did.with(Refused, err.Error())
	}
	warnings, err := o.Cluster.Patch(ctx, inspect.Patch{Of: of, Body: body, Manager: Manager, Dry: o.DryRun == Server})
	if inspect.IsConflict(err) {
		return did.with(Refused, "somebody else has just written it; look at it again")
	}
	if err != nil {
		return did.refused(of, err)
	}
	did.Warnings = plain(warnings)
	return did
}

// whoRolls says who rolls out if it has other content than a source gets.
func whoRolls(f *seen.Fleet) string {
	switch names := len(f.Workloads); {
	case names == 0:
		return "no workload uses it"
	case names > 5:
		return fmt.Sprintf("of the %d workloads that use it, those with other content roll out", names)
	}
	var names []string
	for _, w := range f.Workloads {
		names = append(names, w.Text())
	}
	return "used by " + joined(names) + ": whichever has other content rolls out"
}

// restoring is the merge patch that gives a ConfigMap the content of another.
func restoring(now, snapshot *corev1.ConfigMap) ([]byte, error) {
	data, binaryData := map[string]any{}, map[string]any{}
	for key := range now.Data {
		data[key] = nil
	}
	for key := range now.BinaryData {
		binaryData[key] = nil
	}
	for key, value := range snapshot.Data {
		data[key] = value
	}
	for key, value := range snapshot.BinaryData {
		binaryData[key] = value
	}
	return json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": now.ResourceVersion},
		"data":     data, "binaryData": binaryData,
	})
}
