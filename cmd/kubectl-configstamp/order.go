package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

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

// order is a command that changes objects, with the rights of its user. What became of an object is printed at once.
type order struct {
	*plugin
	output objectPrinter
	dryRun string

	settings  *clusterSettings
	namespace string
	// changed tells that some object was changed.
	changed bool
	// onNamespace are the settings of that Namespace, nil before they are read.
	onNamespace map[string]string
}

// orderCommand completes a command that changes something: it has -o and --dry-run, and knows the cluster's settings.
func (p *plugin) orderCommand(command *cobra.Command, do func(ctx context.Context, o *order, args []string) error) *cobra.Command {
	o := &order{plugin: p}
	o.output.addFlags(command)
	command.Flags().StringVar(&o.dryRun, "dry-run", noDryRun, "none; client: only say what would be written; server: the API server tries the write and does not store it")
	complete(command, "dry-run", noDryRun, clientDryRun, serverDryRun)
	command.RunE = func(command *cobra.Command, args []string) error {
		if !slices.Contains([]string{noDryRun, clientDryRun, serverDryRun}, o.dryRun) {
			return fmt.Errorf("--dry-run=%s: want none, client or server", o.dryRun)
		}
		if err := o.output.complete(); err != nil {
			return err
		}
		settings, namespace, err := p.look(command.Context(), false)
		if err != nil {
			return err
		}
		o.settings, o.namespace = settings, namespace
		o.notSeen(settings.Unread)
		return do(command.Context(), o, args)
	}
	return command
}

// result is what became of one object.
type result struct {
	*target
	// did is one word: paused, unchanged, kept.
	did string
	// changed tells that something was written, or would be without a dry run.
	changed bool
	why     string
	// wrote is the annotation that was written, as kubectl annotate takes it.
	wrote string
	// overrules are the settings and states that the order overrules.
	overrules []string
	// next is what to do, or to look at.
	next string
}

// say prints what became of an object: with -o the object if it was changed, else a text.
func (o *order) say(r *result) error {
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
	list(to, "  It overrules:", r.overrules)
	if r.next != "" {
		paragraph(to, "  ", "Next: "+r.next)
	}
	return nil
}

// words is where texts are printed: with -o on stderr, as stdout has objects.
func (o *order) words() io.Writer {
	if o.output.wanted() {
		return o.text(o.ErrOut)
	}
	return o.text(o.Out)
}

// notSeen says what could not be looked at.
func (o *order) notSeen(unseen []string) {
	list(o.text(o.ErrOut), "Not looked at:", unseen)
}

// warn prints warnings, as kubectl does.
func (o *order) warn(warnings ...string) {
	for _, warning := range warnings {
		fmt.Fprintln(o.text(o.ErrOut), "Warning: "+warning)
	}
}

// list prints texts under a heading, the first few of many.
func list(to io.Writer, heading string, texts []string) {
	const first = 20
	if len(texts) == 0 {
		return
	}
	fmt.Fprintln(to, heading)
	indent := heading[:len(heading)-len(strings.TrimLeft(heading, " "))] + "  "
	for _, text := range texts[:min(first, len(texts))] {
		paragraph(to, indent, text)
	}
	if more := len(texts) - first; more > 0 {
		fmt.Fprintf(to, "%sand %d more\n", indent, more)
	}
}

// send patches an object, and prints the API server's warnings. With --dry-run=client nothing is sent, and a merge patch is
// applied here.
func (o *order) send(ctx context.Context, t *target, kind types.PatchType, body []byte, manager string) (after *target, err error) {
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

// annotate changes annotations of an object: decide says what to write (nil removes an annotation), and what became of
// the object by that. Nothing is stored if the object was changed meanwhile: then decide is called again.
func (o *order) annotate(ctx context.Context, t *target, decide func() (map[string]*string, *result, error)) error {
	var r *result
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		change, did, err := decide()
		if r = did; err != nil || len(change) == 0 {
			return err
		}
		metadata := map[string]any{"annotations": change, "resourceVersion": t.object().GetResourceVersion()}
		after, err := o.send(ctx, t, types.MergePatchType, asJSONText(map[string]any{"metadata": metadata}), orderManager)
		if apierrors.IsConflict(err) {
			if failed := t.Get(); failed != nil {
				return t.refused(failed)
			}
		}
		if err != nil {
			return err
		}
		r.target = after
		return nil
	})
	if err != nil {
		return err
	}
	return o.say(r)
}

// mayBeWrittenAgain warns of a manager that applies an annotation which an order overwrites.
func (o *order) mayBeWrittenAgain(t *target, annotation string) {
	if manager := applierOf(t.object(), annotation); manager != "" {
		o.warn(fmt.Sprintf("%s writes %s on %s, and may write it again: change it where %[1]s reads it", manager, annotation, t.place()))
	}
}

// asJSONText writes a patch of texts.
func asJSONText(patch any) []byte {
	text, err := json.Marshal(patch)
	if err != nil {
		panic(err) // texts always can be written
	}
	return text
}

// The values of --dry-run.
const (
	noDryRun = "none"
	// clientDryRun sends nothing that could change anything.
	clientDryRun = "client"
	// serverDryRun has the API server do all but store it.
	serverDryRun = "server"
)

// patchOptions are those of a patch by a field manager, "" for none.
func patchOptions(dryRun, manager string) *metav1.PatchOptions {
	options := &metav1.PatchOptions{FieldManager: manager}
	if dryRun == serverDryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	return options
}

// joined is "a, b and c".
func joined(texts []string) string {
	if len(texts) < 2 {
		return strings.Join(texts, "")
	}
	return strings.Join(texts[:len(texts)-1], ", ") + " and " + texts[len(texts)-1]
}
