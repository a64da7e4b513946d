package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/report"
	"github.com/configstamp/configstamp/internal/rollout"
)

// whyOf is one run of the command why.
type whyOf struct {
	*task
	*subject
	reports   []*rolloutReport // of its sources
	missing   error            // errNoReports, if the cluster has none
	revisions []*revision      // newest first
}

func (p *plugin) whyCommand() *cobra.Command {
	return p.taskCommand(&cobra.Command{
		Use:   "why WORKLOAD|POD",
		Short: "Say why a workload or pod restarted, or why it did not",
		Long: "Says about one workload: the edits of its sources, how far each edit is on this\n" +
			"workload and what holds it, why each of its revisions was made, and what to do now.\n" +
			"Given a pod, it says the same about the workload that made the pod. With -o it\n" +
			"prints the ConfigRollouts of the sources.",
		Example: "  kubectl configstamp why deployment/web-app\n" +
			"  kubectl configstamp why pod/web-app-5d4f9-x2x9l\n" +
			"  kubectl configstamp why sts/db -n shop -o yaml",
		Args: cobra.RangeArgs(1, 2),
	}, func(ctx context.Context, o *task, args []string) error {
		w := &whyOf{task: o}
		return w.run(ctx, args)
	})
}

func (w *whyOf) run(ctx context.Context, args []string) (err error) {
	if err = w.readSettings(ctx); err != nil {
		return err
	}
	if w.subject, err = w.task.subject(args); err != nil {
		return err
	}
	all, err := w.task.reports(ctx, w.Namespace)
	if w.missing = err; err != nil && !errors.Is(err, errNoReports) {
		return err
	}
	w.reports = reportsOn(all, w.sources)
	if w.output.wanted() {
		return errors.Join(w.output.object(w.Out, listOf(w.reports)), w.missing)
	}
	of, unseen, err := w.task.revisions(w.selector, w.kind)
	if err != nil {
		return err
	}
	w.notSeen(unseen)
	w.revisions = of[w.object().GetUID()]
	w.print(ctx, w.Out)
	return w.missing
}

// print prints what is known of the workload.
func (w *whyOf) print(ctx context.Context, to io.Writer) {
	paragraph(to, "", w.place())
	if w.made != nil {
		paragraph(to, "  ", w.pod())
	}
	if progress := w.progress(); progress != "" {
		paragraph(to, "  ", sentence(progress))
	}
	if w.status.Refused {
		paragraph(to, "  ", sentence(w.failure().String()))
	}
	for _, source := range w.sources {
		w.printSource(to, source)
	}
	if len(w.revisions) > 0 {
		fmt.Fprintln(to)
		w.printRevisions(to)
	}
	fmt.Fprintln(to)
	paragraph(to, "", "Next: "+w.next(ctx))
}

// pod says when what was named was made, and by which revision.
func (w *whyOf) pod() string {
	object := w.made.object()
	text := fmt.Sprintf("%s was made at %s", w.made, at(object.GetCreationTimestamp().Time))
	labels := object.GetLabels()
	hash := cmp.Or(labels["pod-template-hash"], labels["rollouts-pod-template-hash"], labels["controller-revision-hash"])
	for i, r := range w.revisions {
		if hash != "" && strings.HasSuffix("-"+r.Name, "-"+hash) {
			if text += fmt.Sprintf(" for revision %d", r.Number); i > 0 {
				text += ", which is not the newest"
			}
		}
	}
	return text
}

// printSource prints the newest edit of a source, and how far it is on this workload.
func (w *whyOf) printSource(to io.Writer, source checksum.Source) {
	r := reportOn(w.reports, source)
	if r == nil {
		text := "there is no report, so no edit has had to roll anything for it"
		if _, recorded := w.records.Of(source); !recorded {
			text = "this workload has no checksum of it"
		} else if w.missing != nil {
			text = "what became of its edits is not known"
		}
		paragraph(to, "  ", source.String()+": "+text)
		return
	}
	text := source.String() + ": " + r.ready().Reason
	if r.Status.EditedAt != nil {
		text += ", " + editedWords(&r.Status.Edit)
	}
	paragraph(to, "  ", text)
	paragraph(to, "    ", "This workload "+w.standing(r))
}

// standing says how far an edit is on this workload, as the end of a sentence.
func (w *whyOf) standing(r *rolloutReport) string {
	entries, named := entriesFor(&r.Status, w.name())
	switch {
	case len(entries) == 0:
		return "is not concerned: nothing that counts for it changed"
	case len(entries) > 1:
		text := "is not named in the report, which names 20 of each kind"
		if hold := w.hold(w.clockTime()); hold != "" {
			text += "; its settings hold it: " + hold
		}
		return text
	}
	e := entries[0]
	text := "is " + stateWords(e)
	if e.State == report.Failed {
		text = "has failed"
	}
	if !named {
		text = fmt.Sprintf("is one of %d that are %s", e.Count, stateWords(e))
	}
	if e.Since != nil {
		text += " since " + at(e.Since.Time)
	}
	if len(w.revisions) > 0 && e.State == report.Done && w.revisions[0].Created.Before(timeIn(r.Status.EditedAt)) {
		text += ": what it uses is as it was at " + at(w.revisions[0].Created) + ", when its newest revision was made"
	}
	return text + because(e)
}

// next says what to do now, as far as the user may do it.
func (w *whyOf) next(ctx context.Context) string {
	if w.status.Refused {
		advice, _ := w.failure().Advice(w.ref())
		return advice
	}
	for _, r := range w.reports {
		entries, _ := entriesFor(&r.Status, w.name())
		switch {
		case len(entries) == 0, len(entries) > 1 && r.ready().Status == metav1.ConditionTrue, len(entries) == 1 && entries[0].State == report.Done:
		case len(entries) > 1 || entries[0].State != report.Held,
			entries[0].Reason == reason.DeclinedKept.String() && r.ready().Reason == string(report.Halted): // the fix comes first
			return r.ready().Message
		case obeysNoOrder(entries[0].Reason):
			return "put right what holds it: " + cmp.Or(entries[0].Message, r.ready().Message)
		case w.mayPatch(ctx, w.target):
			return "wait; or, if it should roll now all the same: " + w.release(entries[0])
		default:
			return "wait, or ask a user who may change it to end what holds it"
		}
	}
	if len(w.records.Stamps)+len(w.records.Baseline) == 0 {
		namespace := w.inNamespace()
		if standing, why := w.settings.Serves(w.read, namespace); standing == notServed || standing == maybeServed && namespace.Known {
			words, remedy := w.settings.notServedWords(w.read, why)
			if !w.mayPatch(ctx, w.target) {
				remedy = ""
			}
			return strings.TrimSuffix("configstamp leaves it alone: "+words+". "+remedy, ". ")
		}
	}
	if w.missing != nil {
		return "not known without ConfigRollouts"
	}
	return "nothing; no edit of its sources is on its way to it"
}

// obeysNoOrder reports whether no order rolls a workload that is held for this reason.
func obeysNoOrder(why string) bool {
	return slices.Contains([]string{reason.MissingSource.String(), reason.MissingKey.String(), reason.UnreadableSetting.String()}, why)
}

// failure returns why its pods are refused, as the workload's own status shows it.
func (w *whyOf) failure() rollout.Failure {
	return (&rollout.Facts{Status: w.status}).Shown(w.now())
}

// release returns the command that lets a held workload roll.
func (w *whyOf) release(e *report.Entry) string {
	switch origin, _ := w.policy.OriginOf(e.Reason); {
	case e.Reason == reason.DeclinedKept.String():
		return "kubectl configstamp accept " + w.target.words()
	case e.Reason != reason.Paused.String():
		return "kubectl configstamp roll " + w.target.words()
	case origin == checksum.OfNamespace:
		return "kubectl configstamp unpause namespace/" + w.Namespace
	}
	return "kubectl configstamp unpause " + w.target.words()
}

// fewRevisions is how many revisions are printed.
const fewRevisions = 5

// printRevisions prints why there is each of the newest revisions.
func (w *whyOf) printRevisions(to io.Writer) {
	t := &table{indent: "  "}
	t.add("REVISION", "MADE", "BECAUSE")
	for i, r := range w.revisions[:min(fewRevisions, len(w.revisions))] {
		because := "it is the oldest that is kept"
		switch {
		case i+1 == len(w.revisions):
		case r.Created.Before(w.revisions[i+1].Created):
			because = "an older revision came back: by old content that was put back, an undo, or its own return"
		default:
			because = becauseOf(r, w.revisions[i+1], w.reports)
		}
		t.add(fmt.Sprint(r.Number), at(r.Created), because)
	}
	t.print(to)
}
