package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
)

// The exit codes of doctor, beside 0.
const (
	codeWrong    = 1
	codeUnlooked = 5
)

// check is one thing that doctor looks at. look adds findings. Its error says what could not be looked at.
type check struct {
	name string
	look func(*doctor, context.Context) error
}

// checks returns all checks, in the order of their findings. webhook and settings read what later ones need.
func checks() []check {
	return []check{
		{"webhook", (*doctor).webhook},
		{"certificate", (*doctor).certificate},
		{"leader", (*doctor).leader},
		{"reports", (*doctor).reportsWritten},
		{"defaults", (*doctor).defaults},
		{"settings", (*doctor).settingsWritten},
		{"dry run", (*doctor).dryRun},
		{"records", (*doctor).records},
		{"pods", (*doctor).refusedPods},
	}
}

// weight says how bad a finding is.
type weight string

const (
	isError   weight = "error"   // configstamp does not do its work
	isWarning weight = "warning" // some workload does not get what its owners expect
	isNote    weight = "note"    // nothing is wrong; it may be intended
)

func weights() []weight { return []weight{isError, isWarning, isNote} }

// diagnosis is one finding. What several objects of one namespace have in common is one finding.
type diagnosis struct {
	Weight weight `json:"weight"`
	Check  string `json:"check"`
	// About are the objects, as kubectl names them. Namespace is empty for cluster-scoped ones.
	About     []string `json:"about"`
	Namespace string   `json:"namespace,omitempty"`
	// Text says what is wrong, and what follows from it.
	Text string `json:"text"`
	// Remedy is a command that fixes the finding, or shows what to fix, "" where nothing has to be done. Of several objects
	// it is about the first, with --migrate about all.
	Remedy string `json:"remedy"`
}

// doctor is one run of the command doctor.
type doctor struct {
	*plugin
	output   string
	client   dynamic.Interface
	metadata metadata.Interface
	// settings are those of the cluster, with the namespaces that the webhook configuration has.
	settings *clusterSettings
	// namespace is the one whose objects are looked at, "" for all.
	namespace string
	now       time.Time
	// migrates says that only what would differ for workloads of other products is looked at.
	migrates  bool
	reloaders []reloader
	// name is what configstamp's own objects are called, or what their names begin with.
	name string
	webhooks
	fleet

	check    string // the name of the check that is under way
	findings []diagnosis
	count    map[weight]int // of the findings
	// unlooked are the reasons why checks are incomplete, in order, and incomplete the names of these checks by reason.
	unlooked   []string
	incomplete map[string][]string
}

func (p *plugin) doctorCommand() *cobra.Command {
	d := &doctor{plugin: p, count: map[weight]int{}, incomplete: map[string][]string{}}
	all := false
	command := &cobra.Command{
		Use:   "doctor",
		Short: "Find what is wrong with configstamp or with your settings for it, and how to fix it",
		Long: "Checks configstamp itself (webhook, certificate, leader, reports), and your settings\n" +
			"for it: labels and annotations that are misspelt or have no effect, settings that\n" +
			"cannot be read, pauses that were removed. It also finds workloads without\n" +
			"checksums. For what is held, halted or missing, see status.\n\n" +
			"Each finding has a command that fixes it, or that shows what to fix. Nothing is\n" +
			"changed. The exit code is 0 when nothing is wrong (there may be notes); 1 when\n" +
			"something is wrong; 5 when no problem was found, but not everything could be\n" +
			"checked. If nothing is opted in yet, a note says so, and the webhook is not asked.\n\n" +
			"With --migrate it lists instead which workloads Reloader and wave restart, in all\n" +
			"namespaces or that of -n, which flags Reloader has, and what would differ with\n" +
			"configstamp. It may be used before configstamp is installed.",
		Example: "  kubectl configstamp doctor\n" +
			"  kubectl configstamp doctor -A\n" +
			"  kubectl configstamp doctor --migrate\n" +
			"  kubectl configstamp doctor -n shop -o json",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if d.output != "" && d.output != "json" {
				return fmt.Errorf("--output=%s: want json", d.output)
			}
			return d.run(command.Context(), all || d.migrates && *d.config.Namespace == "")
		},
	}
	command.Flags().StringVarP(&d.output, "output", "o", "", "how to print: json")
	complete(command, "output", "json")
	command.Flags().BoolVar(&d.migrates, "migrate", false, "show what would differ for workloads of Reloader and wave")
	command.Flags().BoolVarP(&all, "all-namespaces", "A", false, "look at all namespaces")
	return command
}

func (d *doctor) run(ctx context.Context, all bool) (err error) {
	if d.settings, d.namespace, err = d.look(ctx, all); err != nil {
		return err
	}
	if d.client, d.metadata, err = d.clients(); err != nil {
		return err
	}
	d.now = d.clockTime() // a lease is renewed by the cluster's clock
	var well []string
	looks, wrong := checks(), "something is wrong: "
	if d.migrates {
		looks, wrong = migrationChecks(), "something would differ: "
	}
	for _, c := range looks {
		d.check = c.name
		before := len(d.findings)
		err := c.look(d, ctx)
		d.miss(err)
		if err == nil && len(d.findings) == before {
			well = append(well, c.name)
		}
	}
	d.joinFindings()
	if err := d.print(well); err != nil {
		return err
	}
	if n := d.count[isError] + d.count[isWarning]; n > 0 {
		return exit{codeWrong, errors.New(wrong + counted(n, "finding", "findings"))}
	}
	if len(d.unlooked) > 0 {
		return exit{codeUnlooked, errors.New("no problem was found, but not everything could be checked")}
	}
	return nil
}

// miss notes why the check under way is incomplete, each of several errors by itself.
func (d *doctor) miss(err error) {
	if several, are := err.(interface{ Unwrap() []error }); are {
		for _, err := range several.Unwrap() {
			d.miss(err)
		}
	} else if err != nil {
		why := err.Error()
		if d.incomplete[why] == nil {
			d.unlooked = append(d.unlooked, why)
		}
		if !slices.Contains(d.incomplete[why], d.check) {
			d.incomplete[why] = append(d.incomplete[why], d.check)
		}
	}
}

// errorsOf joins texts into an error, nil for none.
func errorsOf(texts []string) (err error) {
	for _, text := range texts {
		err = errors.Join(err, errors.New(text))
	}
	return err
}

// find adds a finding about an object. In the remedy {of} is the object with its namespace.
func (d *doctor) find(weight weight, namespace, about, text, remedy string) {
	of := about
	if namespace != "" {
		of += " -n " + namespace
	}
	d.findings = append(d.findings, diagnosis{weight, d.check, []string{about}, namespace, text, strings.ReplaceAll(remedy, "{of}", of)})
}

// logs returns the command that shows the recent log of a container of configstamp.
func (d *doctor) logs(container string) string {
	return "kubectl logs -n " + d.installation + " -l " + ownLabel + " -c " + container + " --since=15m --tail=-1"
}

// install returns the command that restores what the chart makes.
func (d *doctor) install() string {
	return "helm upgrade --install " + d.name + " deploy/chart -n " + d.installation + " --values values.yaml"
}

// joinFindings joins findings with the same text and remedy about several objects of a namespace, and counts them. The heaviest come
// first.
func (d *doctor) joinFindings() {
	slices.SortStableFunc(d.findings, func(a, b diagnosis) int { return slices.Index(weights(), a.Weight) - slices.Index(weights(), b.Weight) })
	joined := []diagnosis{} // never null in JSON
	first := map[[4]string]int{}
	for _, f := range d.findings {
		same := [4]string{string(f.Weight), f.Namespace, f.Text, strings.ReplaceAll(f.Remedy, f.About[0], "")}
		if i, found := first[same]; !found {
			first[same] = len(joined)
			joined = append(joined, f)
			d.count[f.Weight]++
		} else if !slices.Contains(joined[i].About, f.About[0]) {
			before := strings.Join(joined[i].About, " ")
			joined[i].About = append(joined[i].About, f.About[0])
			if d.migrates { // its remedies take several objects
				joined[i].Remedy = strings.ReplaceAll(joined[i].Remedy, before+" -n ", strings.Join(joined[i].About, " ")+" -n ")
			}
		}
	}
	d.findings = joined
}

// print prints the findings, and what could not be looked at. well are the checks that found nothing.
func (d *doctor) print(well []string) error {
	unlooked, counts := []string{}, []string(nil)
	for _, why := range d.unlooked {
		unlooked = append(unlooked, strings.Join(d.incomplete[why], ", ")+": "+why)
	}
	if d.output == "json" {
		encoder := json.NewEncoder(d.Out)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		return encoder.Encode(map[string]any{"findings": d.findings, "notLookedAt": unlooked})
	}
	for i := range d.findings {
		d.printFinding(&d.findings[i])
	}
	if len(d.findings) > 0 {
		fmt.Fprintln(d.Out)
	}
	for _, weight := range weights() {
		if n := d.count[weight]; n > 0 {
			counts = append(counts, counted(n, string(weight), string(weight)+"s"))
		}
	}
	if len(counts) > 0 {
		fmt.Fprintln(d.Out, strings.Join(counts, ", ")+".")
	}
	if len(well) > 0 {
		paragraph(d.Out, "", "Nothing wrong: "+strings.Join(well, ", ")+".")
	}
	list(d.text(d.ErrOut), "Not looked at:", unlooked)
	return nil
}

// printFinding prints a finding, and below it the remedy, whole, so that it can be copied.
func (d *doctor) printFinding(f *diagnosis) {
	few := fewNames
	if d.migrates { // names are what it is asked for
		few = len(f.About)
	}
	text := strings.Join(f.About[:min(few, len(f.About))], ", ")
	if more := len(f.About) - few; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	if f.Namespace != "" {
		text += " in namespace " + f.Namespace
	}
	text = printable(text + ": " + f.Text)
	head := fmt.Sprintf("%-9s", f.Weight)
	for _, line := range wrap(text, narrow-9) {
		fmt.Fprintln(d.Out, head+line)
		head = strings.Repeat(" ", 9)
	}
	if f.Remedy != "" {
		fmt.Fprintln(d.Out, head+"  "+printable(f.Remedy))
	}
}
