package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/configstamp/configstamp/internal/answer"
	"github.com/configstamp/configstamp/internal/seen"
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
		paragraph(to, "", counted(others, "other object", "other objects")+" in the files, which this forecast ignores: a workload whose template changes rolls anyway.")
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
	if len(impact.Rolls) > 0 {
		fmt.Fprintln(to)
		fmt.Fprintln(to, "Times are estimates: they assume that nothing fails and nothing else rolls.")
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

// sumWords says how many roll, how, and how long it takes.
func sumWords(impact *answer.Impact) string {
	text := fmt.Sprintf("%s would restart", counted(impact.Restarts, "workload", "workloads"))
	if later := len(impact.Rolls) - impact.Restarts; later > 0 {
		text += fmt.Sprintf(", and %s would be stamped without a restart", counted(later, "other", "others"))
	}
	if impact.First > 0 && impact.Restarts > impact.First {
		text += fmt.Sprintf(": %d first, then in growing steps, at most %d at once", impact.First, impact.AtOnce)
	}
	if impact.Ends != nil {
		text += ". All of this takes about " + about(impact.Ends.Sub(impact.Now))
	}
	if impact.Unsure > 0 {
		text += fmt.Sprintf(". It could not be checked whether %d of them are opted in", impact.Unsure)
	}
	return text + "."
}

// printRolls prints who rolls, in order.
func (p *plugin) printRolls(to io.Writer, impact *answer.Impact, output format, name func(namespace, workload string) string) {
	changes, notes := 0, false
	for i := range impact.Rolls {
		r := &impact.Rolls[i]
		changes, notes = max(changes, r.Change), notes || note(r, impact.Now) != ""
	}
	t := &table{columns: narrow, colour: func(column int, text string) string {
		return map[bool]string{true: p.paint(bold, text), false: text}[column == 0]
	}}
	list := impact.Rolls
	if output == wide {
		t.columns = 0
	} else if len(list) > fewRolls {
		list = list[:fewRolls]
	}
	heads := []string{"STEP", "WORKLOAD", "AFTER", "HEALTHY"}
	if notes {
		heads = append(heads, "NOTE")
	}
	t.add(heads...)
	last := ""
	for i := range list {
		r := &list[i]
		step := strconv.Itoa(r.Step)
		if changes > 1 {
			step = strconv.Itoa(r.Change) + "." + step
		}
		shown := step
		if step == last {
			shown = ""
		}
		last = step
		cells := []string{shown, name(r.Namespace, r.Workload), about(r.At.Sub(impact.Now)), about(r.Healthy.Sub(impact.Now))}
		if r.Waits != "" {
			cells[3] = "-"
		}
		if notes {
			cells = append(cells, note(r, impact.Now))
		}
		t.add(cells...)
	}
	t.print(to)
	if more := len(impact.Rolls) - len(list); more > 0 {
		fmt.Fprintf(to, "and %d more; -o wide lists them.\n", more)
	}
}

// note says what is special about one that rolls.
func note(r *answer.ImpactRoll, now time.Time) string {
	const week = 6 * 24 * time.Hour // in which a day of the week is enough
	var notes []string
	if r.Held != "" {
		notes = append(notes, "held by "+r.Held+" until "+r.At.UTC().Format(map[bool]string{true: "Mon 15:04 MST", false: "2006-01-02 15:04 MST"}[r.At.Sub(now) < week]))
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

// about writes a time that is not exact: 15s, 4m, 2h10m, 3d4h.
func about(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < 2*time.Minute:
		return strconv.Itoa(int(d.Round(time.Second)/time.Second)) + "s"
	case d < 10*time.Minute:
		return twoUnits(d.Round(10*time.Second), time.Minute, "m", time.Second, "s")
	case d < time.Hour:
		return strconv.Itoa(int(d.Round(time.Minute)/time.Minute)) + "m"
	case d < 2*day:
		return twoUnits(d.Round(time.Minute), time.Hour, "h", time.Minute, "m")
	}
	return twoUnits(d.Round(time.Hour), day, "d", time.Hour, "h")
}

// twoUnits writes a time in a unit and a smaller one, which is left out when there is none
// of it.
func twoUnits(d, unit time.Duration, its string, small time.Duration, smalls string) string {
	text := strconv.Itoa(int(d/unit)) + its
	if rest := d % unit / small; rest > 0 {
		text += strconv.Itoa(int(rest)) + smalls
	}
	return text
}

// isAbout reports whether a gap is about objects of a resource, or one of them.
func isAbout(gap seen.Gap, resource string) bool {
	return strings.HasPrefix(strings.TrimPrefix(gap.What, "the content of "), resource)
}
