package harness

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Breakage is what EnvBreak can hold: a way in which the run is made wrong, so
// that tests which pass with it prove nothing.
type Breakage string

// The ways.
const (
	// ProductStopped: no process of configstamp runs.
	ProductStopped Breakage = "product-stopped"
	// WebhookStopped: the controllers run, the webhooks do not.
	WebhookStopped Breakage = "webhook-stopped"
	// ControllerStopped: the webhooks run, the controllers do not.
	ControllerStopped Breakage = "controller-stopped"
	// ExtraRollouts: somebody restarts every workload, now and then.
	ExtraRollouts Breakage = "extra-rollouts"
	// NothingFresh: webhooks believe their memory without a check.
	NothingFresh Breakage = "nothing-fresh"
	// NothingRefused: the admission policies of the chart are not bound.
	NothingRefused Breakage = "nothing-refused"
	// AdminAccount: configstamp's service account is bound to cluster-admin too.
	AdminAccount Breakage = "admin-account"
)

// broken reports whether the run is broken in one of these ways; none: in any.
func broken(ways ...Breakage) bool {
	if len(ways) == 0 {
		return os.Getenv(EnvBreak) != ""
	}
	for _, way := range ways {
		if os.Getenv(EnvBreak) == string(way) {
			return true
		}
	}
	return false
}

// mutant is one line of the product, changed.
type mutant struct{ file, from, to string }

// mutants are further ways: the product is built with a line of it changed, in a
// copy; the checkout stays as it is.
func mutants() map[Breakage]mutant {
	return map[Breakage]mutant{
		"emptied-content":      {"internal/source/condense.go", "Sum: sha256.Sum256(value)", "Sum: sha256.Sum256(value[:0])"},
		"no-key":               {"checksum/digest.go", "hmac.New(sha256.New, secret[:])", "hmac.New(sha256.New, secret[:0])"},
		"nothing-restored":     {"checksum/decide.go", "Decision{Records: a.Held, Outcome: Restored}", "Decision{Records: a.Sent, Outcome: Restored}"},
		"updates-stamp":        {"webhook/handler.go", "admission.TemplateChanged = !object.Template.Same(&old.Template)", "admission.TemplateChanged = true"},
		"adoption-restarts":    {"checksum/verdict.go", "return Unrecorded", "return Untrue"},
		"missing-is-absent":    {"checksum/verdict.go", "_, missing := s.Missing(content); missing", "_, missing := s.Missing(content); false && missing"},
		"unreported-is-absent": {"checksum/verdict.go", "if content == nil && (s.Source.Kind.reported() ||", "if content == nil && (false ||"},
		"lost-key-restarts":    {"checksum/verdict.go", "key, ok := r.Key(keyID)\n\tif !ok {\n\t\treturn Unverifiable", "key, ok := r.Key(keyID)\n\tif !ok {\n\t\treturn Untrue"},
		"nobody-claims":        {"checksum/decide.go", "case a.Asker == Recorder && a.Account == ServiceAccount:", "case false:"},
		"content-is-printed":   {"internal/source/condense.go", "name, value, err := wire.Entry(field.Bytes)", "name, value, err := wire.Entry(field.Bytes)\n\t\t\tif kind == \"Secret\" {\n\t\t\t\tprintln(string(value))\n\t\t\t}"},
		"watches-are-kept":     {"internal/follow/forget.go", "\t\tf.inner = nil\n", ""},
		"gives-up":             {"controller/readmit.go", "return 0, answer.away()", "return 0, nil"},
		"older-is-believed":    {"internal/source/sink.go", "if known(o.resourceVersion, s.newest) {", "if false && known(o.resourceVersion, s.newest) {"},
		"rolls-though-missing": {"checksum/decide.go", "free := review.MayRoll() &&", "free := true ||"},
		"touches-others":       {"webhook/patch.go", "var patch []jsonpatch.Operation", "patch := []jsonpatch.Operation{jsonpatch.NewOperation(\"add\", \"/metadata/labels/broken\", \"x\")}"},
		"denies":               {"webhook/review.go", "Allowed:          true,", "Allowed:          len(warnings) == 0,"},
		"answers-are-few":      {"webhook/handler.go", "if asksWhatWouldRoll(request) {", "if asksWhatWouldRoll(request) && answer.Outcome != checksum.Kept {"},
		"workloads-are-mute":   {"checksum/policy.go", "if !written {\n\t\t\t\tcontinue", "if !written || level.Origin == OfWorkload {\n\t\t\t\tcontinue"},
		"namespaces-are-mute":  {"checksum/served.go", "SettingsOf(meta.Annotations)", "SettingsOf(nil)"},
		"sources-are-mute":     {"checksum/selection.go", "if s.HoldOnly || content == nil ||", "if true || s.HoldOnly || content == nil ||"},
		"policy-edits-restart": {"checksum/verdict.go", "return Reselected", "return Untrue"},
		"nothing-is-held":      {"internal/rollout/hold.go", "HoldAt(now, current); holds {", "HoldAt(now, current); holds && false {"},
		"observed-rolls":       {"checksum/decide.go", "if free && !a.Policy.Observe {", "if free {"},
		"revisions-are-old":    {"internal/workload/status.go", "firstTime(progress.LastUpdate, progress.LastTransition)", "firstTime(\"\", \"\")"},
		"faults-are-guessed":   {"checksum/policy.go", "if err := setting.set(&p, text); err != nil {", "if err := setting.set(&p, text); false && err != nil {"},
		"sources-are-guessed":  {"checksum/policy.go", "if err := setting.setOnSource(&p, text); err != nil {", "if err := setting.setOnSource(&p, text); false && err != nil {"},
		"storms-are-served":    {"internal/rollout/pace.go", "paceRolls    = 3", "paceRolls    = 300"},
		"nothing-halts":        {"internal/rollout/next.go", "if p.released(c, began) &&", "if true || p.released(c, began) &&"},
		"steps-are-large":      {"internal/rollout/change.go", "return l.Step * (1<<(complete+1) - 1)", "return l.Step * (1<<(complete+1) - 1) * 1000"},
		"no-budget":            {"internal/rollout/first.go", "return p.under < p.slots && p.underIn", "return true || p.underIn"},
		"crashes-are-healthy":  {"internal/rollout/health.go", "if trouble != \"\" && now.Sub(state.troubled) >= limits.CrashDeadline {", "if status.Phase == workload.RolledOut {\n\t\treturn healthy, \"\", Verdict{}\n\t}\n\tif false {"},
		"leaders-forget":       {"internal/rollout/find.go", "began, proves := beginning(pods, f.Records.Stamps)", "_, proves := beginning(pods, f.Records.Stamps)\n\tbegan := time.Time{}"},
		"nodes-are-ready":      {"controller/api.go", "return workload.NodeReady(body)", "_, err = workload.NodeReady(body)\n\treturn true, err"},
		"gone-is-silent":       {"controller/held.go", "if len(gone) == 0 {", "if true {"},
		"overruling-is-silent": {"controller/overruled.go", "if len(taken) == 0 {", "if true {"},
		"leaves-at-once":       {"internal/admission/server.go", "time.Sleep(s.Linger)", "s.Linger = 0"},
		"certificates-stay":    {"certs/source.go", "if fit || served == nil ||", "if false && fit || served == nil ||"},
		"misses-are-mute":      {"controller/nearmiss.go", "if m.stood[at] == text && m.told[at] != text {", "if false {"},
		"stamps-decide":        {"internal/podtruth/judge.go", "low, high := started(pod, container)\n\trolled", "if source.Stamp != NoStamp {\n\t\treturn map[Match]Has{Same: Holds, Differs: Lacks}[source.Stamp], StampTrue\n\t}\n\tlow, high := started(pod, container)\n\trolled"},
		"restarts-are-ignored": {"internal/podtruth/judge.go", "proven Match) (Has, Why) {\n\tsource, container := &pod.Sources[use.Source], &pod.Containers[use.Container]", "proven Match) (Has, Why) {\n\tproven = NoStamp\n\tsource, container := &pod.Sources[use.Source], &Container{Started: pod.Created.Add(second)}"},
		"nobody-is-warned":     {"internal/impact/handler.go", "answer{warned, sentences(edit, &brief)}", "answer{warned, sentences(edit, &brief)[:0]}"},
		"warnings-deny":        {"internal/impact/handler.go", "Allowed: true, Warnings", "Allowed: len(said.warnings) == 0, Warnings"},
		"pauses-are-unsaid":    {"internal/impact/sentence.go", "checksum.Paused), \"{who} roll{s}", "checksum.Paused)[:0], \"{who} roll{s}"},
		"windows-are-unsaid":   {"internal/impact/sentence.go", "if !holds {", "if true || !holds {"},
		"every-user-is-named":  {"internal/forecast/concern.go", "q.stays(a, e); why != checksum.NoReason {", "q.stays(a, e); false && why != checksum.NoReason {"},
		"pods-are-unpinned":    {"webhook/pin.go", "range found.Changes {", "range found.Changes[:0] {"},
		"files-are-unpinned":   {"webhook/pin.go", "range found.Changes {", "range found.Changes {\n\t\tif strings.Contains(change.Path, \"/volumes/\") {\n\t\t\tcontinue\n\t\t}"},
		"undo-is-unknown":      {"webhook/undo.go", "if h.Revisions == nil || ", "if true || h.Revisions == nil || "},
		"undo-is-forgotten":    {"checksum/declined.go", "values := declined[s.Source]", "values := declined[s.Source][:0]"},
		"undone-is-no-halt":    {"internal/rollout/decline.go", "c != nil && c.root().brings(at, d.content) {", "false && c.root().brings(at, d.content) {"},
		"named-snapshots-go":   {"internal/snapshot/collect.go", "if facts.Named(s.Name) {", "if false && facts.Named(s.Name) {"},
		"lost-stays-lost":      {"internal/collect/look.go", "switch err := c.options.Archive.Ensure(ctx, namespace, of[name], name); {", "switch err := error(archive.ErrChanged); {"},
		"refused-is-pinned":    {"webhook/pins.go", "\t\tdecision.Unpin(source, archive.Reason(err))\n", "\t\t_ = archive.Reason(err)\n"},
		"forged-is-pinned":     {"internal/archive/archive.go", "if s == nil || s.Of != of || !s.Verified(ring) {", "if s == nil || s.Of != of {"},
		"memory-is-proof":      {"internal/source/check.go", "version, err := c.reader.version(ctx, namespace, source)", "memory, _ := c.store.Get(namespace, source)\n\t\tversion, err := memory.ResourceVersion, error(nil)"},
		"leases-are-taken":     {"internal/lease/lease.go", "return time.Since(l.at) < promised", "return false && time.Since(l.at) < promised"},
		"settle-is-forgotten":  {"internal/rollout/settle.go", "return max(0, s.due(e).Sub(now))", "return min(0, s.due(e).Sub(now))"},
	}
}

// Overlay writes, into dir, what the go command needs to build the product broken in
// a way, "" when that changes no line.
func Overlay(dir string, way Breakage) (string, error) {
	change, ok := mutants()[way]
	if !ok {
		return "", nil
	}
	source, err := root()
	if err != nil {
		return "", err
	}
	return replaced(dir, filepath.Join(source, change.file), change.from, change.to)
}

// replaced writes, into dir, what the go command needs to build with a file in
// which from, which must stand there once, is to.
func replaced(dir, original, from, to string) (overlay string, err error) {
	failed := func(err error) (string, error) { return "", fmt.Errorf("changing a copy of %s: %w", original, err) }
	text, err := os.ReadFile(original)
	if err != nil {
		return failed(err)
	}
	if bytes.Count(text, []byte(from)) != 1 {
		return failed(fmt.Errorf("it does not hold %q once: bring what is to be changed up to date", from))
	}
	into, err := os.MkdirTemp(dir, "changed-")
	if err != nil {
		return failed(err)
	}
	changed, file := filepath.Join(into, "changed.go"), filepath.Join(into, "overlay.json")
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{original: changed}})
	if err != nil {
		return failed(err)
	}
	err = errors.Join(os.WriteFile(changed, bytes.Replace(text, []byte(from), []byte(to), 1), 0o600), os.WriteFile(file, replace, 0o600))
	if err != nil {
		return failed(err)
	}
	return file, nil
}
