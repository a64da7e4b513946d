package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/configstamp/configstamp/checksum"
)

// usersOf is one run of the command users.
type usersOf struct {
	*order // which is never sent
	output objectPrinter
	keys   []string // the keys that an edit changes; none: it may change any key

	source    checksum.Source
	ofSource  *checksum.SourcePolicy // the settings on the source
	namespace knownNamespace
	found     []*use
	errs      []error // about workloads that cannot be read
}

// use is a workload that uses the source.
type use struct {
	*subject
	ways string
	edit effect
	why  string
}

// effect is what an edit of the source does to a workload.
type effect int

const (
	restarts effect = iota
	laterPods
	notKnown
	nothing
)

// String returns the effect as the table has it.
func (e effect) String() string {
	return [...]string{"restarts", "later pods", "not known", "nothing"}[e]
}

func (p *plugin) usersCommand() *cobra.Command {
	u := &usersOf{}
	files := genericclioptions.FileNameFlags{Usage: "manifests of edits: files, directories, URLs, or - for stdin", Filenames: &[]string{}, Recursive: new(bool)}
	command := &cobra.Command{
		Use:   "users SOURCE | users -f FILE",
		Short: "Say which workloads use a ConfigMap or Secret, and what an edit restarts",
		Long: "Lists the workloads of the namespace that use a ConfigMap, Secret or\n" +
			"SecretProviderClass, how they use it, and what an edit does to each: it restarts,\n" +
			"or only its later pods get the new content, or nothing happens, and why.\n" +
			"With -o it prints the workloads that an edit restarts or may restart.\n" +
			"The role view is enough.\n\n" +
			"With -f it sends the ConfigMaps and Secrets of manifests to the API server as a dry\n" +
			"run, and prints the warnings: configstamp warns of edits that restart workloads.\n" +
			"That needs the right to write these objects, and writes nothing.",
		Example: "  kubectl configstamp users configmap/payment-api-config\n" +
			"  kubectl configstamp users cm/payment-api-config --key LOG_LEVEL -n shop\n" +
			"  kubectl configstamp users secret/db -o name\n" +
			"  kubectl configstamp users -f config.yaml",
		Args: cobra.MaximumNArgs(2),
		RunE: func(command *cobra.Command, args []string) error {
			if err := u.output.complete(); err != nil {
				return err
			}
			options := files.ToOptions()
			switch {
			case len(options.Filenames) == 0:
				return u.run(command.Context(), p, args)
			case len(args)+len(u.keys) > 0 || u.output.wanted():
				return errors.New("-f prints the warnings of a dry run: leave out the source, --key and --output")
			}
			return p.dryRun(command.Context(), &options)
		},
	}
	u.output.addFlags(command)
	files.AddFlags(command.Flags())
	command.Flags().StringArrayVar(&u.keys, "key", nil, "say what an edit of this key does; may be repeated")
	return command
}

func (u *usersOf) run(ctx context.Context, p *plugin, args []string) (err error) {
	if u.source, err = sourceOf(args); err != nil {
		return err
	}
	if u.order, err = p.reader(ctx); err != nil {
		return err
	}
	t, missing := u.order.source(u.source)
	switch {
	case missing == nil:
		u.ofSource = checksum.SourcePolicyOf(t.object().GetAnnotations())
	case apierrors.IsForbidden(missing): // the role view may not read Secrets
		u.notSeen([]string{"the settings on " + u.source.String() + ", and whether it exists: " + missing.Error()})
		missing = nil
	case !apierrors.IsNotFound(missing):
		return missing
	}
	u.namespace = u.readNamespace()
	unseen, err := u.eachWorkload(u.settings.Kinds, u.order.namespace, "", u.visit)
	switch {
	case err != nil:
		return err
	case len(unseen) == len(u.settings.Kinds):
		return fmt.Errorf("you have no right to list any kind of workload in namespace %s, so nothing is known about it: %s", u.order.namespace, unseen[0])
	}
	u.notSeen(unseen)
	switch {
	case missing != nil && len(u.found) == 0:
		return errors.Join(append(u.errs, missing)...)
	case missing != nil:
		u.warn(u.source.String() + " does not exist in namespace " + u.order.namespace + ": workloads that need it do not roll until it does")
	}
	slices.SortFunc(u.found, func(a, b *use) int {
		return cmp.Or(cmp.Compare(a.edit, b.edit), strings.Compare(a.String(), b.String()))
	})
	return errors.Join(append(u.errs, u.print())...)
}

// visit finds out whether a workload uses the source. A Pod, or a Job, that a controller has made is not listed.
func (u *usersOf) visit(t *target) error {
	if t.kind.CreateOnly && metav1.GetControllerOf(t.object()) != nil {
		return nil
	}
	s, err := u.subjectOf(t, nil)
	if err != nil {
		u.errs = append(u.errs, err)
		return nil
	}
	s.policy = u.policyOf(s.read, u.source)
	if ways := u.waysOf(s); ways != "" {
		edit, why := u.effectOn(s)
		u.found = append(u.found, &use{s, ways, edit, why})
	}
	return nil
}

// waysOf lists how a workload uses the source, and which keys of it, "" if it does not.
func (u *usersOf) waysOf(s *subject) string {
	keys := map[string][]string{}
	spec, _ := s.read.Template.PodSpec() // subjectOf has read it
	for i := range s.references {
		if r := &s.references[i]; r.Source == u.source && r.All {
			keys[wayOf(r, spec)] = []string{"all keys"}
		} else if r.Source == u.source {
			keys[wayOf(r, spec)] = append(keys[wayOf(r, spec)], r.Keys...)
		}
	}
	if slices.Contains(s.policy.Also, u.source) || s.read.Foreign(u.settings.Dialects).Named(u.source) {
		keys["also"] = []string{"all keys"}
	}
	var ways []string
	for _, way := range slices.Sorted(maps.Keys(keys)) {
		slices.Sort(keys[way])
		ways = append(ways, way+": "+strings.Join(slices.Compact(keys[way]), ", "))
	}
	return strings.Join(ways, "; ")
}

// wayOf names the field of a pod template in which a reference stands; of a volume, by its first mount.
func wayOf(r *checksum.Reference, spec *corev1.PodSpec) string {
	init := func(c corev1.Container) bool { return c.Name == r.Where.Container && c.RestartPolicy == nil }
	switch {
	case r.Where.PullSecret:
		return "imagePullSecrets"
	case r.Where.Volume == "" && r.Where.Env != "":
		return "env"
	case r.Where.Volume == "":
		return "envFrom"
	case r.Use == checksum.Live:
		return "file"
	case r.Use != checksum.Startup:
		return "volume"
	case slices.ContainsFunc(spec.InitContainers, init):
		return "init file"
	}
	return "subPath"
}

// effectOn returns what an edit of the source does to a workload, and why it does not restart now.
func (u *usersOf) effectOn(s *subject) (effect, string) {
	standing, reason := u.settings.Serves(s.read, u.namespace)
	recorded := len(s.records.Stamps)+len(s.records.Baseline) > 0
	switch holds := u.holds(s.target); {
	case s.kind.CreateOnly:
		return nothing, "it is stamped when it is created, and never restarted"
	case standing == notServed && recorded && u.settings.Hinges(s.read, u.namespace):
		return notKnown, "no label opts it in, but it has checksums: it restarts if the flag --namespaces lists its namespace"
	case standing == notServed:
		why, _ := u.settings.notServedWords(s.read, u.namespace, reason)
		return nothing, why
	case !u.counts(s, s.policy, u.ofSource, u.keys):
		return nothing, u.leftOut(s)
	case s.policy.Observe:
		return nothing, "its mode is observe, so a change is reported and nothing restarts"
	case standing == maybeServed:
		return notKnown, "its Namespace cannot be read, and may opt it in or out"
	case len(s.policy.Faults) > 0:
		return restarts, "held until this can be read: " + s.policy.Faults[0].Error()
	case s.status.Waits != "":
		return laterPods, s.status.Waits
	case len(holds) > 0:
		return restarts, "held by " + joined(holds)
	}
	return restarts, ""
}

// counts returns whether an edit of some keys (none: of any key) counts for a workload under a policy and the settings on
// the source.
func (u *usersOf) counts(s *subject, policy checksum.Policy, ofSource *checksum.SourcePolicy, keys []string) bool {
	before, after := &checksum.Content{Policy: ofSource}, &checksum.Content{Policy: ofSource}
	for _, key := range slices.Sorted(slices.Values(keys)) {
		after.Entries = append(after.Entries, checksum.Entry{Name: key})
	}
	return slices.ContainsFunc(checksum.Selections(s.references, policy), func(selection checksum.Selection) bool {
		return selection.Source == u.source && (len(keys) == 0 && selection.Counts(after) || selection.Differs(before, after))
	})
}

// leftOut returns why an edit does not count for a workload: the first reason of a table.
func (u *usersOf) leftOut(s *subject) string {
	named := func(patterns []checksum.SourcePattern) bool {
		return slices.ContainsFunc(patterns, func(p checksum.SourcePattern) bool { return p.Matches(u.source) })
	}
	mounts := func(r checksum.Reference) bool { return r.Source == u.source && r.Use != checksum.Unused }
	files, every := s.policy, s.policy
	files.Uses, every.Uses = []checksum.Use{checksum.Startup, checksum.Live}, []checksum.Use{checksum.Startup, checksum.Live, checksum.Node}
	for _, row := range []struct {
		holds bool
		why   string
	}{
		{!s.policy.Serves(u.source.Kind), "no " + string(u.source.Kind) + " counts in this cluster (--sources, --secret-provider-classes)"},
		{named(s.policy.Ignore), settingOf(&s.policy, "ignore") + " names it"},
		{slices.Contains(s.policy.Ignored, u.source), "the platform makes it, so it counts only if configstamp.dev/also names it"},
		{len(s.policy.Only) > 0 && !named(s.policy.Only), settingOf(&s.policy, "only") + " does not name it"},
		{u.counts(s, s.policy, nil, u.keys), "configstamp.dev/ignore or ignore-keys on the source leaves it out"},
		{u.counts(s, files, u.ofSource, u.keys), settingOf(&s.policy, "restart-on") + " leaves out files that the kubelet refreshes"},
		{u.counts(s, every, u.ofSource, u.keys), "only nodes read it, and pods do not"},
		{!slices.ContainsFunc(s.references, mounts), "no container mounts the volume"},
		{u.counts(s, every, u.ofSource, nil), "it does not use " + strings.Join(u.keys, " or ")},
	} {
		if row.holds {
			return row.why
		}
	}
	return "its annotations for Reloader or wave leave it out"
}

// print prints the workloads: with -o those that an edit restarts or may restart, otherwise all of them.
func (u *usersOf) print() error {
	list, count := listOf(nil), map[effect]int{}
	t := &table{columns: narrow, notes: map[int]string{}}
	t.add("WORKLOAD", "AN EDIT", "USED BY")
	for i, w := range u.found {
		if w.edit != nothing {
			list.Items = append(list.Items, *w.object())
		}
		count[w.edit]++
		t.add(w.String(), w.edit.String(), w.ways)
		t.notes[i+1] = w.why
	}
	switch {
	case u.output.wanted():
		return u.output.object(u.Out, list)
	case len(u.found) == 0:
		paragraph(u.Out, "", "No workload in namespace "+u.order.namespace+" uses "+u.source.String()+".")
		return nil
	}
	t.print(u.Out)
	fmt.Fprintln(u.Out)
	text := fmt.Sprintf("An edit restarts %d of %s", count[restarts], counted(len(u.found), "workload", "workloads"))
	if n := count[notKnown]; n > 0 {
		text += fmt.Sprintf("; for %d this is not known", n)
	}
	paragraph(u.Out, "", text+".")
	return nil
}
