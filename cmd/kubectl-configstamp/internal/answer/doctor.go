package answer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/seen"
	"github.com/configstamp/configstamp/internal/workload"
)

// Doctor tells what is wrong: with configstamp itself, with what may be in its way, and with
// what people have written for it.
type Doctor struct {
	// Findings are what is wrong, the heaviest first.
	Findings []Finding `json:"findings"`
	// Checks are what was looked at.
	Checks []Check `json:"checks"`
}

// Finding is one thing that is wrong. What several objects of one namespace have in common
// is one finding.
type Finding struct {
	Weight Weight `json:"weight"`
	// Check is the name of the one that has found it.
	Check string `json:"check"`
	// About are the objects, as kubectl names them; Namespace is theirs, "" for those that
	// are in none.
	About     []string `json:"about"`
	Namespace string   `json:"namespace,omitempty"`
	// Text says what is wrong, and what comes of it.
	Text string `json:"text"`
	// Remedy is a command: it fixes the finding, or shows what to fix. Of several objects
	// it is about the first.
	Remedy string `json:"remedy"`
}

// Weight says how bad a finding is.
type Weight string

// The weights. A Note is nothing wrong: it may be meant so.
const (
	Error   Weight = "error"   // configstamp does not do its work
	Warning Weight = "warning" // some workload does not get what its people expect
	Note    Weight = "note"
)

func weights() []Weight { return []Weight{Error, Warning, Note} }

// Check is one thing that was looked at.
type Check struct {
	Name string `json:"name"`
	// State is WrongFound, if there is an Error or a Warning of it; else Unlooked, if it
	// could not be looked at, or not at all of it, and Why says why; else Skipped, if there
	// is nothing to look at yet; else Well.
	State CheckState `json:"state"`
	Why   string     `json:"why,omitempty"`
	// Says is what is on and what is off, of what can be either.
	Says string `json:"says,omitempty"`
}

// CheckState is what came of a check.
type CheckState string

// The states.
const (
	Well       CheckState = "well"
	WrongFound CheckState = "wrong"
	Unlooked   CheckState = "unknown"
	Skipped    CheckState = "skipped"
)

// visit is one visit of the doctor.
type visit struct {
	*seen.Checkup
	now   time.Time
	found []Finding
	check string // the one under way
	says  string // what it says
	// skipped tells that there is nothing to look at for it.
	skipped bool
	// over says why nothing else is looked at, "" while it is.
	over string
	// unreached tells that it is known why the webhook says nothing, explained of which
	// workloads.
	unreached bool
	// silent tells that some answer lacked, and it is not known why.
	silent    bool
	explained map[workload.Ref]bool
}

// checks are all that is looked at, in the order of their findings. Each says what could
// not be looked at, "" where all was.
func checks() []struct {
	name string
	look func(*visit) (unlooked string)
} {
	return []struct {
		name string
		look func(*visit) (unlooked string)
	}{
		{"server", (*visit).server},
		{"webhook", (*visit).webhook},
		{"dry run", (*visit).dryRun},
		{"certificate", (*visit).certificate},
		{"impact warnings", (*visit).impactWarnings},
		{"key", (*visit).key},
		{"leader", (*visit).leader},
		{"defaults", (*visit).defaults},
		{"settings", (*visit).settings},
		{"pauses", (*visit).pauses},
		{"sources", (*visit).sources},
		{"records", (*visit).records},
		{"pods", (*visit).refusedPods},
		{"other webhooks", (*visit).otherWebhooks},
		{"events", (*visit).events},
		{"peers", (*visit).peers},
	}
}

// DoctorOf looks for what is wrong.
func DoctorOf(up *seen.Checkup, now time.Time) Doctor {
	v := &visit{Checkup: up, now: now, explained: map[workload.Ref]bool{}}
	doctor := Doctor{Findings: []Finding{}}
	for _, check := range checks() {
		v.check, v.says, v.skipped = check.name, "", false
		before := len(v.found)
		result := Check{Name: check.name, State: Well}
		why := v.over
		if why == "" {
			why = check.look(v)
		}
		switch {
		case why != "":
			result.State, result.Why = Unlooked, why
		case v.skipped:
			result.State = Skipped
		}
		if slices.ContainsFunc(v.found[before:], func(f Finding) bool { return f.Weight != Note }) {
			result.State = WrongFound
		}
		result.Says = v.says
		doctor.Checks = append(doctor.Checks, result)
	}
	doctor.Findings = append(doctor.Findings, sorted(v.found)...)
	return doctor
}

// sorted joins findings that say the same of several objects of a namespace, and sorts them
// by weight, check, namespace and object.
func sorted(all []Finding) []Finding {
	var joined []Finding
	for _, one := range all {
		i := slices.IndexFunc(joined, func(f Finding) bool {
			return f.Weight == one.Weight && f.Check == one.Check && f.Namespace == one.Namespace && f.Text == one.Text
		})
		if i < 0 {
			joined = append(joined, one)
			continue
		}
		f := &joined[i]
		if !slices.Contains(f.About, one.About[0]) {
			f.About = append(f.About, one.About[0])
		}
		slices.Sort(f.About)
		if f.About[0] == one.About[0] {
			f.Remedy = one.Remedy
		}
	}
	order := map[string]int{}
	for i, check := range checks() {
		order[check.name] = i
	}
	slices.SortStableFunc(joined, func(a, b Finding) int {
		return cmp.Or(
			cmp.Compare(slices.Index(weights(), a.Weight), slices.Index(weights(), b.Weight)),
			cmp.Compare(order[a.Check], order[b.Check]), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.About[0], b.About[0]),
		)
	})
	return joined
}

// few is how many objects are named of those that have a finding in common.
const few = 3

// Where names the objects of a finding: deployment/a, deployment/b and 7 more in namespace
// shop.
func (f *Finding) Where() string {
	text := strings.Join(f.About[:min(len(f.About), few)], ", ")
	if more := len(f.About) - few; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	if f.Namespace != "" {
		text += " in namespace " + f.Namespace
	}
	return text
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// tell adds a finding about one object. In the remedy {of} is the object, with its
// namespace.
func (v *visit) tell(weight Weight, namespace, about, text, remedy string) {
	v.found = append(v.found, Finding{
		Weight: weight, Check: v.check, About: []string{about}, Namespace: namespace, Text: text,
		Remedy: strings.ReplaceAll(remedy, "{of}", inNamespace(about, namespace)),
	})
}

func inNamespace(object, namespace string) string {
	if namespace == "" {
		return object
	}
	return object + " -n " + namespace
}

// own adds a finding about an object of configstamp's own namespace.
func (v *visit) own(weight Weight, about, text, remedy string) {
	v.tell(weight, v.Settings.Installation, about, text, strings.ReplaceAll(remedy, "{ns}", "-n "+v.Settings.Installation))
}

// logs shows what a part of configstamp has said of late.
func (v *visit) logs(container string) string {
	return "kubectl logs -n " + v.Settings.Installation + " -l app.kubernetes.io/name=configstamp -c " + container + " --since=15m --tail=-1"
}

// install is the command that puts back what the chart makes.
func (v *visit) install() string {
	return "helm upgrade --install " + v.Name + " deploy/chart -n " + v.Settings.Installation + " --values values.yaml"
}

// unlooked says what of some things could not be looked at, "" for none of them.
func (v *visit) unlooked(words ...string) string {
	why, _ := v.Missed(words...)
	return why
}

// unseen is why something could not be looked at, "" if it was.
func (v *visit) unseen(looked bool, words ...string) string {
	if looked {
		return ""
	}
	return cmp.Or(v.unlooked(words...), "it could not be checked")
}

// served calls a function with each workload that is served, as far as that is known: its
// labels say it, or the webhook.
func (v *visit) served(do func(*seen.Workload)) {
	for _, w := range v.Workloads {
		code := v.Outcome(w).Code
		switch standing, _ := v.Serves(w); {
		case standing == seen.Served, standing == seen.MaybeServed && code != seen.Unknown && code != seen.OptedOut:
			do(w)
		}
	}
}

// lists says which of the lists of some resources, in the namespaces that were looked at,
// could not be had; "" for none of them.
func (v *visit) lists(resources ...string) string {
	in := " in all namespaces"
	if v.Namespace != "" {
		in = " in namespace " + v.Namespace
	}
	for i := range resources {
		resources[i] += in
	}
	return v.unlooked(resources...)
}

// kinds are the resources of the workloads.
func (v *visit) kinds() (resources []string) {
	for _, kind := range v.Settings.Kinds.Readmitted() {
		resources = append(resources, kind.String())
	}
	return resources
}

// kindsOfSources are the resources of the sources.
func kindsOfSources() []string {
	return []string{"configmaps", "secrets", "secretproviderclasses.secrets-store.csi.x-k8s.io"}
}
