package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/snapshot"
)

// purgeFlags are those of snapshots by which some are deleted.
type purgeFlags struct {
	on, yes bool
	only    []string
}

func (p *plugin) snapshotsCommand() *cobra.Command {
	var purge purgeFlags
	command := &cobra.Command{
		Use:   "snapshots SOURCE",
		Short: "List the snapshots of a ConfigMap, and what uses them",
		Long: "Lists the snapshots of a ConfigMap, the newest first: how old each is, whether\n" +
			"the ConfigMap still holds the same, how many pods read it, and which workloads and\n" +
			"revisions name it.\n" +
			"Snapshots are made for workloads with configstamp.dev/pin: \"true\".\n" +
			"With --purge it deletes those whose content the ConfigMap does not hold any more,\n" +
			"for good, such as after a password was put into it by mistake. Those that pods\n" +
			"read, or would, stay: their containers could not start again.",
		Example: "  kubectl configstamp snapshots configmap/web-message\n" +
			"  kubectl configstamp snapshots cm/web-message -n shop -o name\n" +
			"  kubectl configstamp snapshots cm/web-message -n shop --purge --yes",
		Args: cobra.RangeArgs(1, 2),
	}
	command.Flags().BoolVar(&purge.on, "purge", false, "delete the snapshots whose content the ConfigMap does not hold any more; without --yes, only say which")
	command.Flags().BoolVar(&purge.yes, "yes", false, "with --purge: delete them, which cannot be undone")
	command.Flags().StringSliceVar(&purge.only, "only", nil, "with --purge: only this snapshot, by its name or the digits at its end; may be repeated")
	return p.orderCommand(command, func(_ context.Context, o *order, args []string) error {
		k, err := o.kept(args)
		switch {
		case err != nil:
			return err
		case purge.on:
			return o.purge(k, &purge)
		}
		return o.snapshots(k)
	})
}

// kept are a ConfigMap, nil if there is none, and its snapshots, the newest first.
type kept struct {
	source    checksum.Source
	now       *keptConfigMap
	snapshots []*keptConfigMap
}

// keptConfigMap is a ConfigMap or a snapshot of one.
type keptConfigMap struct {
	*target
	*corev1.ConfigMap
	content *checksum.Content
	// made is when the snapshot was made.
	made time.Time
}

// kept reads a ConfigMap and its snapshots. The user has no key: whether a snapshot is what its name says, only the
// webhook can tell.
func (o *order) kept(args []string) (*kept, error) {
	source, err := sourceOf(args)
	if err != nil {
		return nil, err
	}
	if source.Kind != checksum.ConfigMap {
		return nil, fmt.Errorf("%s: only ConfigMaps have snapshots", source)
	}
	k := &kept{source: source}
	t, missing := o.read(o.namespace, "configmaps", source.Name)
	if missing == nil {
		k.now, missing = keptIn(t)
	}
	if missing != nil && !apierrors.IsNotFound(missing) {
		return nil, missing
	}
	unseen, err := o.list(o.namespace, checksum.SnapshotLabel+"="+checksum.SnapshotMarked, []string{"configmaps"}, func(info *resource.Info) error {
		t := &target{Info: info}
		of, claims := snapshot.Claims(t.object().GetLabels(), t.object().GetAnnotations(), t.Name)
		if !claims || of != source {
			return nil
		}
		one, err := keptIn(t)
		k.snapshots = append(k.snapshots, one)
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case len(unseen) > 0:
		return nil, fmt.Errorf("the snapshots of %s cannot be read: %s", source, unseen[0])
	case missing != nil && len(k.snapshots) == 0:
		return nil, missing
	}
	slices.SortFunc(k.snapshots, func(a, b *keptConfigMap) int {
		return cmp.Or(b.made.Compare(a.made), cmp.Compare(a.target.Name, b.target.Name))
	})
	return k, nil
}

// keptIn reads a ConfigMap. An error quotes nothing of it.
func keptIn(t *target) (*keptConfigMap, error) {
	var cm corev1.ConfigMap
	if runtime.DefaultUnstructuredConverter.FromUnstructured(t.object().Object, &cm) != nil {
		return nil, fmt.Errorf("reading %s: it does not have the form of a ConfigMap", t.place())
	}
	read, _ := snapshot.From(&cm) // of what is none it says when it was made all the same
	return &keptConfigMap{target: t, ConfigMap: &cm, content: checksum.ContentOfConfigMap(&cm), made: read.MadeAt().UTC()}, nil
}

// isNow reports whether a snapshot is what its ConfigMap holds.
func (k *kept) isNow(s *keptConfigMap) bool {
	return k.now != nil && k.now.content.SameEntries(s.content)
}

// called finds a snapshot by its name, or by the digits at its end.
func (k *kept) called(name string) (*keptConfigMap, error) {
	var names []string
	for _, s := range k.snapshots {
		if s.target.Name == name || strings.HasSuffix(s.target.Name, "-"+name) {
			return s, nil
		}
		names = append(names, s.target.Name)
	}
	return nil, fmt.Errorf("%s has no snapshot %q%s", k.source, name, didYouMean(name, names))
}

// uses are what needs a snapshot.
type uses struct {
	// workloads name it in their templates, and bring are the commands that have them take the present content.
	workloads, bring []string
	// revisions named it once.
	revisions []string
	// pods is how many read it.
	pods int
}

// users are the workloads and revisions whose pods read each snapshot, and how many do, by its name. unseen says what
// could not be listed.
func (o *order) users(k *kept) (of map[string]*uses, unseen []string, err error) {
	of = map[string]*uses{}
	for _, s := range k.snapshots {
		of[s.target.Name] = &uses{}
	}
	at := func(name string) *uses { return cmp.Or(of[name], &uses{}) }
	var keeping []string
	for _, kind := range o.settings.Kinds {
		if kept := kind.RevisionResource(); kept != "" && !slices.Contains(keeping, kept) {
			keeping = append(keeping, kept)
		}
	}
	revisions, unseen, err := o.revisions("", keeping...)
	if err != nil {
		return nil, nil, err
	}
	more, err := o.eachWorkload(o.settings.Kinds.Readmitted(), o.namespace, "", func(t *target) error {
		object, _, err := t.decode()
		if err != nil {
			return err
		}
		records, _ := object.Records() // a baseline that cannot be read counts as none
		now := records.PinnedAt()[k.source].Snapshot
		use, verb := at(now), "roll"
		if t.declines() {
			verb = "accept"
		}
		use.workloads, use.bring = append(use.workloads, t.String()), append(use.bring, "kubectl configstamp "+verb+" "+t.words())
		for _, r := range revisions[t.object().GetUID()] {
			if then := r.pins()[k.source].Snapshot; then != now {
				at(then).revisions = append(at(then).revisions, fmt.Sprintf("%s revision %d", t, r.Number))
			}
		}
		return nil
	})
	if unseen = append(unseen, more...); err != nil {
		return nil, nil, err
	}
	more, err = o.list(o.namespace, "", []string{"pods"}, func(info *resource.Info) error {
		t := &target{Info: info}
		pinned, _ := checksum.ParseBaseline(t.object().GetAnnotations()[checksum.PinnedAnnotation]) // what cannot be read is none
		if phase, _, _ := unstructured.NestedString(t.object().Object, "status", "phase"); phase != "Succeeded" && phase != "Failed" {
			at(pinned[k.source]).pods++
		}
		return nil
	})
	return of, append(unseen, more...), err
}

// texts are all that name a snapshot, for a table.
func (u *uses) texts() []string {
	return slices.Sorted(slices.Values(slices.Concat(u.workloads, u.revisions)))
}

// snapshots prints the snapshots of a ConfigMap: with -o the objects, else a table.
func (o *order) snapshots(k *kept) error {
	if o.output.wanted() {
		for _, s := range k.snapshots {
			if err := o.output.object(o.Out, s.Object); err != nil {
				return err
			}
		}
		return nil
	}
	if len(k.snapshots) == 0 {
		paragraph(o.words(), "", k.now.place()+" has no snapshots: no workload that uses it has configstamp.dev/pin set to true, or none was stamped since.")
		return nil
	}
	users, unseen, err := o.users(k)
	if err != nil {
		return err
	}
	rows := table{columns: narrow}
	rows.add("NAME", "AGE", "NOW", "PODS", "USED BY")
	for _, s := range k.snapshots {
		now := ""
		if k.isNow(s) {
			now = "yes"
		}
		use := users[s.target.Name]
		rows.add(s.target.Name, duration.HumanDuration(o.now().Sub(s.made)), now, strconv.Itoa(use.pods), strings.Join(use.texts(), ", "))
	}
	rows.print(o.text(o.Out))
	o.notSeen(unseen)
	return nil
}

// purge deletes snapshots for good, which no collection would do while anything names them.
func (o *order) purge(k *kept, flags *purgeFlags) error {
	if !flags.yes && o.dryRun == noDryRun {
		o.dryRun = clientDryRun
	}
	chosen := k.snapshots
	if len(flags.only) > 0 {
		chosen = nil
	}
	for _, name := range flags.only {
		s, err := k.called(name)
		if err != nil {
			return err
		}
		chosen = append(chosen, s)
	}
	users, unseen, err := o.users(k)
	if err != nil {
		return err
	}
	if len(unseen) > 0 {
		return fmt.Errorf("nothing was deleted, as something that could not be looked at may need a snapshot: %s", strings.Join(unseen, "; "))
	}
	var errs []error
	deleted := false
	for _, s := range chosen {
		did, err := o.purgeOne(s, k.isNow(s), users[s.target.Name])
		if err != nil {
			errs = append(errs, err)
		}
		deleted = deleted || did
	}
	if deleted && !flags.yes {
		errs = append(errs, errors.New("nothing was deleted, as this cannot be undone: say it again with --yes"))
	}
	return errors.Join(errs...)
}

// purgeOne deletes a snapshot. One that pods read, or would, stays: their containers could not start again. So does one
// that holds what its ConfigMap holds: it would be made again. A revision that names it loses the way back to its content.
func (o *order) purgeOne(s *keptConfigMap, isNow bool, use *uses) (deleted bool, err error) {
	switch {
	case isNow:
		return false, o.say(&result{target: s.target, did: "kept", why: "its ConfigMap holds the same now; change that first, if this is what has to go"})
	case len(use.workloads) > 0:
		return false, fmt.Errorf("%s: new pods of %s read it: no container of theirs could start without it (first: %s)", s.place(), joined(use.workloads), strings.Join(use.bring, "; "))
	case use.pods > 0:
		return false, fmt.Errorf("%s is read by %s: no container could start again without it; wait until they are gone, or delete them", s.place(), counted(use.pods, "pod", "pods"))
	}
	r := &result{target: s.target, did: "deleted", changed: true, why: "nothing reads it"}
	if len(use.revisions) > 0 {
		r.why = "no pod reads it; an undo to " + joined(use.revisions) + " brings the template back, and takes what the ConfigMap holds then"
	}
	if o.dryRun != clientDryRun {
		unchanged := &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &s.UID, ResourceVersion: &s.ConfigMap.ResourceVersion}}
		helper := resource.NewHelper(s.Client, s.Mapping).DryRun(o.dryRun == serverDryRun)
		if _, err := helper.DeleteWithOptions(s.target.Namespace, s.target.Name, unchanged); err != nil {
			return false, s.refused(err)
		}
	}
	return true, o.say(r)
}
