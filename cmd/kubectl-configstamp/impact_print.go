package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/answer"
	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/seen"
)

// fewRolls is how many workloads are listed unless all are asked for.
const fewRolls = 15

// printImpact prints what edits would do.
func (p *plugin) printImpact(to io.Writer, impact *answer.Impact, output format, others int) {
	several := namespacesOf(impact) > 1
	name := func(namespace, workload string) string {
		if several {
			return namespace + "/" + workload
		}
		return workload
	}
	if output == names {
		for i := range impact.Rolls {
			fmt.Fprintln(to, name(impact.Rolls[i].Namespace, impact.Rolls[i].Workload))
		}
		return
	}
	for i := range impact.Edits {
		paragraph(to, "", editWords(&impact.Edits[i]))
	}
	if len(impact.Edits) == 0 {
		fmt.Fprintln(to, "There is no ConfigMap and no Secret in these files.")
	}
	if others > 0 {
		paragraph(to, "", counted(others, "other object", "other objects")+" in the files, which this ignores: a workload whose template changes rolls anyway.")
	}
	if len(impact.Rolls) > 0 {
		paragraph(to, "", sumWords(impact))
		fmt.Fprintln(to)
		p.printRolls(to, impact, output, name)
	} else if len(impact.Edits) > 0 {
		fmt.Fprintln(to, "No workload would roll.")
	}
	if len(impact.Stays) > 0 {
		fmt.Fprintln(to)
		printStays(to, impact.Stays, name)
	}
}

func namespacesOf(impact *answer.Impact) int {
	known := map[string]bool{}
	for i := range impact.Edits {
		known[impact.Edits[i].Namespace] = true
	}
	return len(known)
}

// editWords says what one edit is.
func editWords(e *answer.ImpactEdit) string {
	what := e.Source.String() + " in namespace " + e.Namespace
	switch {
	case e.Edit == "changed" && len(e.Keys) > 0:
		return what + ": " + fewWords(e.Keys, 4) + " " + map[bool]string{true: "changes", false: "change"}[len(e.Keys) == 1] + "."
	case e.Edit == "changed":
		return what + ": any of its keys changes."
	case e.Edit == "unchanged":
		return what + ": nothing changes."
	case e.Edit == "made":
		return what + ": it does not exist yet, and is created."
	}
	return what + ": it is deleted."
}

// sumWords says how many roll, and how.
func sumWords(impact *answer.Impact) string {
	text := fmt.Sprintf("%s would restart", counted(impact.Restarts, "workload", "workloads"))
	if later := len(impact.Rolls) - impact.Restarts; later > 0 {
		text += fmt.Sprintf(", and %s would be stamped without a restart", counted(later, "other", "others"))
	}
	if impact.First > 0 && impact.Restarts > impact.First {
		text += fmt.Sprintf(": %d first, then in growing steps", impact.First)
	}
	if impact.Unsure > 0 {
		text += fmt.Sprintf(". It could not be checked whether %d of them are opted in", impact.Unsure)
	}
	return text + "."
}

// printRolls prints who rolls.
func (p *plugin) printRolls(to io.Writer, impact *answer.Impact, output format, name func(namespace, workload string) string) {
	t := &table{columns: narrow, colour: func(column int, text string) string {
		return map[bool]string{true: p.paint(bold, text), false: text}[column == 0]
	}}
	list := impact.Rolls
	if output == wide {
		t.columns = 0
	} else if len(list) > fewRolls {
		list = list[:fewRolls]
	}
	row := func(workload, note string) { t.add(workload, note) }
	if !slices.ContainsFunc(list, func(r answer.ImpactRoll) bool { return note(&r) != "" }) {
		row = func(workload, _ string) { t.add(workload) }
	}
	row("WORKLOAD", "NOTE")
	for i := range list {
		row(name(list[i].Namespace, list[i].Workload), note(&list[i]))
	}
	t.print(to)
	if more := len(impact.Rolls) - len(list); more > 0 {
		fmt.Fprintf(to, "and %d more; -o wide lists them.\n", more)
	}
}

// note says what is special about one that rolls.
func note(r *answer.ImpactRoll) string {
	var notes []string
	if r.Held != "" {
		notes = append(notes, "held by "+r.Held+" until "+r.Until.UTC().Format("2006-01-02 15:04 MST"))
	}
	if r.Waits != "" {
		notes = append(notes, "no restart: "+r.Waits)
	} else if r.Recreates {
		notes = append(notes, "down meanwhile: all its pods end first")
	}
	if r.Unsure {
		notes = append(notes, "if its Namespace is opted in")
	}
	return strings.Join(notes, "; ")
}

// printStays says who does not roll, each reason once.
func printStays(to io.Writer, stays []answer.ImpactStay, name func(namespace, workload string) string) {
	type reason struct {
		why   string
		rolls bool
	}
	var order []reason
	by := map[reason][]string{}
	for i := range stays {
		s := &stays[i]
		r := reason{s.Why, s.Rolls}
		if by[r] == nil {
			order = append(order, r)
		}
		by[r] = append(by[r], name(s.Namespace, s.Workload))
	}
	fmt.Fprintln(to, "Would not roll:")
	for _, r := range order {
		text := fewWords(by[r], 3) + ": " + r.why
		if r.rolls {
			text += "; it rolls when that ends"
		}
		paragraph(to, "  ", text)
	}
}

// fewWords names the first few of some, and how many more there are.
func fewWords(all []string, few int) string {
	if len(all) <= few+1 {
		return strings.Join(all, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(all[:few], ", "), len(all)-few)
}

// isAbout reports whether a gap is about objects of a resource, or one of them.
func isAbout(gap seen.Gap, resource string) bool {
	return strings.HasPrefix(strings.TrimPrefix(gap.What, "the content of "), resource)
}
