package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/report"
)

// errNoReports is the error of a cluster without ConfigRollouts.
var errNoReports = errors.New("this cluster has no ConfigRollouts: configstamp is not installed, or its chart value report.enabled is false. " +
	"The commands users, wait (with the right to patch workloads) and doctor, and all orders, work without them")

// rolloutReport is a ConfigRollout: as it was read, and as the API server has it.
type rolloutReport struct {
	*report.ConfigRollout
	object *unstructured.Unstructured
}

// ready returns the condition Ready, whose reason is the state of the edit. It is Unknown if configstamp has not
// written it yet.
func (r *rolloutReport) ready() metav1.Condition {
	if ready := meta.FindStatusCondition(r.Status.Conditions, report.Ready); ready != nil {
		return *ready
	}
	return metav1.Condition{Status: metav1.ConditionUnknown, Reason: "Unknown", Message: "configstamp has not looked at it yet"}
}

// source names the source, such as configmap/web.
func (r *rolloutReport) source() string {
	return strings.ToLower(r.Spec.Source.Kind) + "/" + r.Spec.Source.Name
}

// reports reads the ConfigRollouts of a namespace ("" for all), the newest edit first.
func (p *plugin) reports(ctx context.Context, namespace string) ([]*rolloutReport, error) {
	client, _, err := p.clients()
	if err != nil {
		return nil, err
	}
	list, err := client.Resource(report.GroupVersion().WithResource(report.Resource)).Namespace(namespace).List(ctx, metav1.ListOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, errNoReports
	case err != nil:
		return nil, fmt.Errorf("reading ConfigRollouts: %w", err)
	}
	all := make([]*rolloutReport, len(list.Items))
	for i := range list.Items {
		object := &list.Items[i]
		text, err := object.MarshalJSON()
		if err != nil {
			return nil, fmt.Errorf("reading ConfigRollout %s: %w", object.GetName(), err)
		}
		read, err := report.Read(text)
		if err != nil {
			return nil, fmt.Errorf("reading ConfigRollout %s: %w", object.GetName(), err)
		}
		all[i] = &rolloutReport{read, object}
	}
	slices.SortFunc(all, func(a, b *rolloutReport) int {
		return cmp.Or(timeIn(b.Status.EditedAt).Compare(timeIn(a.Status.EditedAt)), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return all, nil
}

// reportOn returns the report on a source of one namespace, nil if there is none.
func reportOn(all []*rolloutReport, source checksum.Source) *rolloutReport {
	name := report.NameOf(source)
	if i := slices.IndexFunc(all, func(r *rolloutReport) bool { return r.Name == name }); i >= 0 {
		return all[i]
	}
	return nil
}

// reportsOn returns the reports on some sources of one namespace, the newest edit first.
func reportsOn(all []*rolloutReport, sources []checksum.Source) []*rolloutReport {
	names := map[string]bool{}
	for _, source := range sources {
		names[report.NameOf(source)] = true
	}
	return slices.DeleteFunc(slices.Clone(all), func(r *rolloutReport) bool { return !names[r.Name] })
}

// pause waits for some time, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// entriesFor returns the entry of a workload. If a report does not name the workload, these are all entries that have
// more workloads than names.
func entriesFor(s *report.Status, workload string) (entries []*report.Entry, named bool) {
	for i := range s.Workloads {
		e := &s.Workloads[i]
		if slices.Contains(e.Names, workload) {
			return []*report.Entry{e}, true
		}
		if int(e.Count) > len(e.Names) {
			entries = append(entries, e)
		}
	}
	return entries, false
}

// Bounds of what is printed of one report. Its object has the rest.
const (
	fewEntries = 6
	fewNames   = 3
)

// print prints a report: the state of the edit, what to do, and the workloads, the most urgent first.
func (r *rolloutReport) print(to io.Writer) {
	ready := r.ready()
	paragraph(to, "", fmt.Sprintf("%s in namespace %s: %s", r.source(), r.Namespace, ready.Reason))
	if r.Status.EditedAt != nil {
		paragraph(to, "  ", fmt.Sprintf("%s; %d of %d done, %d failed", editedWords(&r.Status.Edit), r.Status.Done, r.Status.Total, r.Status.Failed))
	}
	paragraph(to, "  ", sentence(ready.Message))
	if len(r.Status.Workloads) == 0 {
		return
	}
	t := &table{indent: "  "}
	t.add("STATE", "SINCE", "WORKLOADS")
	for i := range r.Status.Workloads[:min(fewEntries, len(r.Status.Workloads))] {
		e := &r.Status.Workloads[i]
		since := ""
		if e.Since != nil {
			since = at(e.Since.Time)
		}
		t.add(string(e.State), since, namesIn(e)+because(e))
	}
	t.print(to)
	if more := len(r.Status.Workloads) - fewEntries; more > 0 {
		paragraph(to, "  ", fmt.Sprintf("and %d more: kubectl get configrollout %s -n %s -o yaml", more, r.Name, r.Namespace))
	}
}

// namesIn names the workloads of an entry, the first few of many.
func namesIn(e *report.Entry) string {
	text := strings.Join(e.Names[:min(fewNames, len(e.Names))], ", ")
	if more := int(e.Count) - fewNames; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// because says why workloads are in the state of an entry, and until when, as the end of a sentence.
func because(e *report.Entry) string {
	text := ""
	if e.Message != "" {
		text = ": " + e.Message
	}
	if e.Until != nil {
		text += " until " + at(e.Until.Time)
	}
	return text
}

// editedWords says when a source was edited, by what, and which keys changed.
func editedWords(e *report.Edit) string {
	text := "edited " + at(timeIn(e.EditedAt))
	if e.Manager != "" {
		text += " by " + managerName(e.Manager)
	}
	if len(e.Keys) > 0 {
		text += ": " + strings.Join(e.Keys, ", ")
	}
	return text
}

// sentence begins a text with a capital letter.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// timeIn returns a time that may be missing; the zero time then.
func timeIn(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}
