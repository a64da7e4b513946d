package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/workload"
)

func (p *plugin) undoCommand() *cobra.Command {
	var number int64
	command := &cobra.Command{
		Use:   "undo WORKLOAD",
		Short: "Bring a workload back to an earlier revision, with its content",
		Long: "Brings a workload back to one of its revisions, as kubectl rollout undo does.\n" +
			"Where pods are pinned to snapshots (configstamp.dev/pin), ConfigMaps go back to\n" +
			"the content of that revision as well; the warnings say which ones do. configstamp\n" +
			"then keeps that content until the ConfigMap changes again, or until kubectl\n" +
			"configstamp accept.",
		Example: "  kubectl configstamp undo deployment/web-app --dry-run=server\n" +
			"  kubectl configstamp undo sts/db -n shop --to-revision 3 --dry-run=client",
		Args: cobra.RangeArgs(1, 2),
	}
	command.Flags().Int64Var(&number, "to-revision", 0, "number of the revision, as kubectl configstamp why shows it; 0 is the one before the newest")
	return p.orderCommand(command, func(ctx context.Context, o *task, args []string) error {
		t, err := o.workload(o.settings.Kinds, o.namespace, args)
		if err != nil {
			return err
		}
		return o.undo(ctx, t, number)
	})
}

// undo gives a workload the template of one of its revisions, as kubectl rollout undo does: it names no field manager, by
// which the webhook knows it. The webhook says which sources go back, too. The workload's own annotations stay.
func (o *task) undo(ctx context.Context, t *target, number int64) error {
	to, err := o.revisionTo(t, number)
	if err != nil {
		return err
	}
	template, err := to.template()
	if err != nil {
		return err
	}
	after, err := o.send(ctx, t, types.JSONPatchType, asJSONText([]map[string]any{{"op": "replace", "path": "/spec/template", "value": template}}), "")
	if err != nil {
		return err
	}
	if o.dryRun == noDryRun && after.object().GetGeneration() == t.object().GetGeneration() {
		return o.say(&result{target: t, did: "unchanged", why: fmt.Sprintf("its template is that of revision %d already", to.Number)})
	}
	r := &result{target: after, did: "undone", changed: true, next: "kubectl rollout status " + t.words()}
	r.why = fmt.Sprintf("it goes back to revision %d of %s", to.Number, at(to.Created))
	if len(to.pins()) == 0 {
		r.why += "; that revision names no snapshots, so its pods read the present content"
	}
	return o.say(r)
}

// revision is a revision of a workload, with the object that keeps it.
type revision struct {
	*workload.Revision
	object *unstructured.Unstructured
}

// pins are the snapshots that the pods of the revision read. Pins that cannot be read are none.
func (r *revision) pins() checksum.Pins {
	pins, _ := checksum.ParsePins(r.Template.Metadata.Annotations[checksum.PinsAnnotation])
	return pins
}

// template is the pod template that the revision keeps, without what controllers added.
func (r *revision) template() (map[string]any, error) {
	template, found, _ := unstructured.NestedMap(r.object.Object, "spec", "template")
	if !found {
		template, found, _ = unstructured.NestedMap(r.object.Object, "data", "spec", "template")
	}
	if !found {
		return nil, fmt.Errorf("%s %s in namespace %s keeps no pod template", r.object.GetKind(), r.object.GetName(), r.object.GetNamespace())
	}
	delete(template, "$patch")
	for _, hash := range []string{"pod-template-hash", "rollouts-pod-template-hash"} {
		unstructured.RemoveNestedField(template, "metadata", "labels", hash)
	}
	return template, nil
}

// revisionTo returns the revision of a workload with a number; 0: the one before the newest, which is that of now.
func (o *task) revisionTo(t *target, number int64) (*revision, error) {
	s, err := o.subjectOf(t, checksum.Source{})
	if err != nil {
		return nil, err
	}
	revisions, unseen, err := o.revisions(s.selector, t.kind)
	switch own := revisions[t.object().GetUID()]; {
	case err != nil:
		return nil, err
	case len(unseen) > 0:
		return nil, fmt.Errorf("%s: its revisions cannot be read: %s", t.place(), unseen[0])
	case number == 0 && len(own) > 1:
		return own[1], nil
	case number == 0:
		return nil, fmt.Errorf("%s: it has no earlier revision", t.place())
	default:
		if i := slices.IndexFunc(own, func(r *revision) bool { return r.Number == number }); i >= 0 {
			return own[i], nil
		}
		return nil, fmt.Errorf("%s: it has no revision %d; kubectl configstamp why %s lists them", t.place(), number, t.words())
	}
}

// revisions reads the revisions of workloads of some kinds in the namespace, the newest first, by the UID of the workload.
func (o *task) revisions(selector string, kinds ...*workload.Kind) (of map[types.UID][]*revision, unseen []string, err error) {
	of = map[types.UID][]*revision{}
	var resourceTypes []string
	for _, kind := range kinds {
		if kept := kind.RevisionResource(); kept != "" {
			resourceTypes = append(resourceTypes, kept+".v1.apps")
		}
	}
	slices.Sort(resourceTypes)
	if resourceTypes = slices.Compact(resourceTypes); len(resourceTypes) == 0 {
		return of, nil, nil
	}
	unseen, err = o.list(o.namespace, selector, resourceTypes, func(info *resource.Info) error {
		object := (&target{Info: info}).object()
		raw, err := object.MarshalJSON()
		if err != nil {
			return err
		}
		read, err := workload.DecodeRevision(raw)
		if err != nil {
			return fmt.Errorf("reading %s %s: %w", info.Mapping.Resource.Resource, info.Name, err)
		}
		if number, err := strconv.ParseInt(read.Annotations["rollout.argoproj.io/revision"], 10, 64); err == nil {
			read.Number = number
		}
		of[read.Owner] = append(of[read.Owner], &revision{read, object})
		return nil
	})
	for _, own := range of {
		slices.SortFunc(own, func(a, b *revision) int {
			return cmp.Or(cmp.Compare(b.Number, a.Number), b.Created.Compare(a.Created))
		})
	}
	return of, unseen, err
}

func (p *plugin) acceptCommand() *cobra.Command {
	return p.orderCommand(&cobra.Command{
		Use:   "accept WORKLOAD",
		Short: "Accept content that an undo declined",
		Long: "Withdraws what an undo declined: the workload takes the present content of its\n" +
			"ConfigMaps and rolls out now. As with roll, it does not wait for its turn.",
		Example: "  kubectl configstamp accept deployment/web-app\n" +
			"  kubectl configstamp accept sts/db -n shop --dry-run=server",
		Args: cobra.RangeArgs(1, 2),
	}, func(ctx context.Context, o *task, args []string) error {
		t, err := o.workload(o.settings.Kinds, o.namespace, args)
		if err != nil {
			return err
		}
		return o.accept(ctx, t)
	})
}

// declines reports whether an undo has declined content of a workload's sources. What cannot be read may.
func (t *target) declines() bool {
	declined, err := checksum.ParseDeclined(t.object().GetAnnotations()[checksum.DeclinedAnnotation])
	return err != nil || len(declined) > 0
}

// accept has a workload take content that an undo has sent back. It rolls now.
func (o *task) accept(ctx context.Context, t *target) error {
	if !t.declines() {
		return o.say(&result{target: t, did: "unchanged", why: "no undo has declined content of its sources"})
	}
	after, err := o.send(ctx, t, types.MergePatchType, []byte("{}"), checksum.AcceptManager)
	if err != nil {
		return err
	}
	r := &result{target: after, did: "accepted", changed: true, next: "kubectl configstamp wait " + t.words()}
	switch r.why = "declined content counts again, and the workload rolls out if a source still holds it"; {
	case o.dryRun == clientDryRun:
	case after.declines():
		return fmt.Errorf("%s: the order was sent, and the content is still declined: the webhook did not answer, or could not read the sources in time; try again", t.place())
	case o.dryRun == noDryRun && after.object().GetGeneration() == t.object().GetGeneration():
		r.why, r.next = "nothing is declined now; nothing has rolled out yet", "kubectl configstamp why "+t.words()
	}
	return o.say(r)
}
