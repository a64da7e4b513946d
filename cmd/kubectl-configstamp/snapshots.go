package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/snapshot"
)

func (p *plugin) snapshotsCommand() *cobra.Command {
	return p.taskCommand(&cobra.Command{
		Use:   "snapshots SOURCE",
		Short: "List the snapshots of a ConfigMap, and what uses them",
		Long: "Lists the snapshots of a ConfigMap, the newest first: how old each is, whether\n" +
			"the ConfigMap still holds the same, how many pods read it, and which workloads and\n" +
			"revisions name it.\n" +
			"Snapshots are made for workloads with configstamp.dev/pin: \"true\".",
		Example: "  kubectl configstamp snapshots configmap/web-message\n" +
			"  kubectl configstamp snapshots cm/web-message -n shop -o name",
		Args: cobra.RangeArgs(1, 2),
	}, func(ctx context.Context, o *task, args []string) error {
		if err := o.readSettings(ctx); err != nil {
			return err
		}
		k, err := o.kept(args)
		if err != nil {
			return err
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
func (o *task) kept(args []string) (*kept, error) {
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

// uses are what needs a snapshot: the workloads whose templates name it, the revisions that named it, and how many pods
// read it.
type uses struct {
	by   []string
	pods int
}

// users returns what needs each snapshot, by its name. unseen says what could not be listed.
func (o *task) users(k *kept) (of map[string]*uses, unseen []string, err error) {
	of = map[string]*uses{}
	for _, s := range k.snapshots {
		of[s.target.Name] = &uses{}
	}
	at := func(name string) *uses { return cmp.Or(of[name], &uses{}) }
	revisions, unseen, err := o.revisions("", o.settings.Kinds...)
	if err != nil {
		return nil, nil, err
	}
	more, err := o.eachWorkload(o.settings.Kinds.Readmitted(), o.namespace, func(t *target) error {
		object, _, err := t.decode()
		if err != nil {
			return err
		}
		records, _ := object.Records() // a baseline that cannot be read counts as none
		now := records.PinnedAt()[k.source].Snapshot
		at(now).by = append(at(now).by, t.String())
		for _, r := range revisions[t.object().GetUID()] {
			if then := r.pins()[k.source].Snapshot; then != now {
				at(then).by = append(at(then).by, fmt.Sprintf("%s revision %d", t, r.Number))
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

// snapshots prints the snapshots of a ConfigMap: with -o the objects, else a table.
func (o *task) snapshots(k *kept) error {
	if o.output.wanted() {
		for _, s := range k.snapshots {
			if err := o.output.object(o.Out, s.Object); err != nil {
				return err
			}
		}
		return nil
	}
	if len(k.snapshots) == 0 {
		paragraph(o.Out, "", k.now.place()+" has no snapshots: no workload that uses it has configstamp.dev/pin set to true, or none was stamped since.")
		return nil
	}
	users, unseen, err := o.users(k)
	if err != nil {
		return err
	}
	rows := &table{}
	rows.add("NAME", "AGE", "NOW", "PODS", "USED BY")
	for _, s := range k.snapshots {
		now, use := "", users[s.target.Name]
		if k.isNow(s) {
			now = "yes"
		}
		slices.Sort(use.by)
		rows.add(s.target.Name, duration.HumanDuration(o.now().Sub(s.made)), now, strconv.Itoa(use.pods), strings.Join(use.by, ", "))
	}
	rows.print(o.Out)
	o.notSeen(unseen)
	return nil
}
