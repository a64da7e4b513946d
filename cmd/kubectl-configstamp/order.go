package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
)

// orderManager is the field manager of what orders write. Its name does not begin with
// "kubectl": Flux takes over what such managers wrote on an object that it applies, and
// removes what is not in Git, so that a pause would end at its next sync.
const orderManager = "configstamp-order"

// The values of --dry-run.
const (
	noDryRun = "none"
	// clientDryRun sends nothing that could change anything.
	clientDryRun = "client"
	// serverDryRun has the API server do all but store it.
	serverDryRun = "server"
)

// orderCommand completes a command that changes objects, with the rights of its user: it has --dry-run, and knows the
// cluster's settings. It prints at once what became of an object.
func (p *plugin) orderCommand(command *cobra.Command, do func(ctx context.Context, o *task, args []string) error) *cobra.Command {
	var dryRun string
	command.Flags().StringVar(&dryRun, "dry-run", noDryRun, "none; client: only print what would be written; server: the API server tries the write and does not store it")
	complete(command, "dry-run", noDryRun, clientDryRun, serverDryRun)
	return p.taskCommand(command, func(ctx context.Context, o *task, args []string) error {
		if o.dryRun = dryRun; !slices.Contains([]string{noDryRun, clientDryRun, serverDryRun}, dryRun) {
			return fmt.Errorf("--dry-run=%s: want none, client or server", dryRun)
		}
		if err := o.readSettings(ctx); err != nil {
			return err
		}
		return do(ctx, o, args)
	})
}

// result is what became of one object.
type result struct {
	*target
	// did is one word: paused, unchanged, kept.
	did string
	// changed reports that something was written, or would be without a dry run.
	changed bool
	why     string
	// wrote is the annotation that was written, as kubectl annotate takes it.
	wrote string
	// next is what to do, or to look at.
	next string
}

// say prints what became of an object: with -o the object if it was changed, else a text.
func (o *task) say(r *result) error {
	o.changed = o.changed || r.changed
	if o.output.wanted() && r.changed {
		return o.output.object(o.Out, r.Object)
	}
	to := o.words()
	dry, wrote := "", "  wrote "
	if o.dryRun != noDryRun {
		dry, wrote = " ("+o.dryRun+" dry run)", "  would write "
	}
	paragraph(to, "", r.place()+" "+r.did+dry+": "+r.why)
	if r.wrote != "" {
		fmt.Fprintln(to, wrote+r.wrote)
	}
	if r.next != "" {
		paragraph(to, "  ", "Next: "+r.next)
	}
	return nil
}

// send patches an object, and prints the API server's warnings. With --dry-run=client nothing is sent, and a merge patch is
// applied here.
func (o *task) send(ctx context.Context, t *target, kind types.PatchType, body []byte, manager string) (after *target, err error) {
	if o.dryRun == clientDryRun {
		object := t.object().DeepCopy()
		before, err := object.MarshalJSON()
		if err == nil && kind == types.MergePatchType {
			if before, err = jsonpatch.MergePatch(before, body); err == nil {
				err = object.UnmarshalJSON(before)
			}
		}
		return t.with(object), err
	}
	after, warnings, err := t.patch(ctx, kind, body, patchOptions(o.dryRun, manager))
	o.warn(warnings...)
	return after, err
}

// annotate changes annotations of an object: decide returns what to write (nil removes an annotation), and what became of
// the object by that. Nothing is stored if the object was changed meanwhile: then decide is called again.
func (o *task) annotate(ctx context.Context, t *target, decide func() (map[string]*string, *result)) error {
	var r *result
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		var change map[string]*string
		if change, r = decide(); len(change) == 0 {
			return nil
		}
		metadata := map[string]any{"annotations": change, "resourceVersion": t.object().GetResourceVersion()}
		after, err := o.send(ctx, t, types.MergePatchType, asJSONText(map[string]any{"metadata": metadata}), orderManager)
		if apierrors.IsConflict(err) {
			if failed := t.Get(); failed != nil {
				return t.refused(failed)
			}
		}
		if err == nil {
			r.target = after
		}
		return err
	})
	if err != nil {
		return err
	}
	return o.say(r)
}

// asJSONText writes a patch of texts.
func asJSONText(patch any) []byte {
	text, err := json.Marshal(patch)
	if err != nil {
		panic(err) // texts always can be written
	}
	return text
}

// patchOptions are those of a patch by a field manager, "" for none.
func patchOptions(dryRun, manager string) *metav1.PatchOptions {
	options := &metav1.PatchOptions{FieldManager: manager}
	if dryRun == serverDryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	return options
}
