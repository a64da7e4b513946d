package checksum

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Dialect is the annotations of another product, which workloads written for it
// carry.
type Dialect string

// The dialects.
const (
	Reloader Dialect = "reloader" // stakater/Reloader
	Wave     Dialect = "wave"     // wave-k8s/wave
)

// ParseDialect reads the name of a dialect.
func ParseDialect(text string) (Dialect, error) {
	if dialect := Dialect(text); dialect == Reloader || dialect == Wave {
		return dialect, nil
	}
	return "", fmt.Errorf("reading dialect %q: want %s or %s", text, Reloader, Wave)
}

// Foreign is the meaning of other products' annotations on a workload; nil: it has none.
type Foreign struct {
	// Reloader reports that Reloader's annotations are among them.
	Reloader bool
	// Chooses reports that they choose the sources that count: those below, and no others.
	Chooses bool
	// Kinds: what the pod template names of these.
	Kinds []Kind
	// Marked: what the pod template names and carries Reloader's mark.
	Marked bool
	// Names: what there is of these names, whether the pod template names it or not.
	Names []NamePattern
	// Excluded sources never count.
	Excluded []Source
	// MinInterval is as in Policy; 0: not set.
	MinInterval time.Duration
	Faults      []Fault
}

// NamePattern names sources of one kind by a regular expression (RE2) for their
// whole name.
type NamePattern struct {
	Kind Kind
	// plain is the one name that there can be, expression nil then: most patterns
	// are a name, and a compiled expression takes 3 KiB.
	plain      string
	expression *regexp.Regexp
}

// mostParts is how much the expressions of one list may be, all together, with what
// is repeated written out: a[b-z]{999} is 3,000 parts. They are kept compiled, which
// takes up to 40 bytes a part, and each name in the namespace is compared with them.
const mostParts = 4000

// parseNamePattern reads an expression that has no more than some parts, and tells
// how many it has; a plain name has none.
func parseNamePattern(kind Kind, text string, most int) (pattern NamePattern, parts int, err error) {
	if err := checkLength(text); err != nil {
		return NamePattern{}, 0, err
	}
	expression, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return NamePattern{}, 0, noExpression(text)
	}
	if expression.Op == syntax.OpLiteral && expression.Flags&syntax.FoldCase == 0 {
		return NamePattern{Kind: kind, plain: string(expression.Rune)}, 0, nil
	}
	if parts = partsOf(expression); parts > most {
		return NamePattern{}, 0, fmt.Errorf("want regular expressions of no more than %d parts in all; a part that repeats counts each time", mostParts)
	}
	whole, err := regexp.Compile("^(?:" + text + ")$")
	if err != nil {
		return NamePattern{}, 0, noExpression(text)
	}
	return NamePattern{Kind: kind, expression: whole}, parts, nil
}

func noExpression(text string) error { return fmt.Errorf("%q is not a regular expression (RE2)", text) }

// partsOf counts what an expression is made of, before anything is made of it.
func partsOf(expression *syntax.Regexp) int {
	parts := 1 + len(expression.Rune)
	for _, sub := range expression.Sub {
		parts += partsOf(sub)
	}
	if expression.Op == syntax.OpRepeat {
		parts *= max(expression.Min, expression.Max, 1)
	}
	return parts
}

// Matches reports whether a source is named.
func (p NamePattern) Matches(source Source) bool {
	if p.Kind != source.Kind {
		return false
	}
	if p.expression == nil {
		return p.plain == source.Name
	}
	return p.expression.MatchString(source.Name)
}

// OptsIn reports whether a workload asks the other product to look after it.
func (f *Foreign) OptsIn() bool {
	return f != nil && (len(f.Kinds) > 0 || f.Marked || len(f.Names) > 0 || len(f.Faults) > 0)
}

// counts reports whether a source counts by what other products' annotations
// say; ifMarked, that it does if it carries the mark.
func (f *Foreign) counts(source Source) (counts, ifMarked bool) {
	switch {
	case f == nil:
		return true, false
	case slices.Contains(f.Excluded, source):
		return false, false
	case !f.Chooses || slices.Contains(f.Kinds, source.Kind) || f.Named(source):
		return true, false
	}
	return f.Marked, true
}

// Named reports whether a source counts by its name, referenced or not.
func (f *Foreign) Named(source Source) bool {
	return f != nil && slices.ContainsFunc(f.Names, func(p NamePattern) bool { return p.Matches(source) })
}

// Translate reads the annotations of a workload that are written in some
// dialects: its own, or, for one of Reloader's that is not there, its pod
// template's. One that cannot be read is a fault.
func Translate(dialects []Dialect, namespace string, workload, template map[string]string) *Foreign {
	if len(dialects) == 0 {
		return nil
	}
	t := translation{workload: workload, template: template, namespace: namespace}
	if slices.Contains(dialects, Reloader) {
		t.reloader()
	}
	if slices.Contains(dialects, Wave) {
		t.wave()
	}
	if !t.found {
		return nil
	}
	foreign := t.Foreign // alone: t holds every annotation
	return &foreign
}

// translation is a Foreign in the making.
type translation struct {
	Foreign
	workload, template map[string]string
	namespace          string
	found              bool
}

const (
	reloaderDomain = "reloader.stakater.com/"
	waveDomain     = "wave.pusher.com/"
)

// reloaderKinds are Reloader's annotations for one kind.
var reloaderKinds = [...]struct { //nolint:gochecknoglobals // a table that nothing changes
	kind                  Kind
	auto, reload, exclude string
}{
	{ConfigMap, "configmap." + reloaderDomain + "auto", "configmap." + reloaderDomain + "reload", "configmaps.exclude." + reloaderDomain + "reload"},
	{Secret, "secret." + reloaderDomain + "auto", "secret." + reloaderDomain + "reload", "secrets.exclude." + reloaderDomain + "reload"},
	{SecretProviderClass, "secretproviderclass." + reloaderDomain + "auto", "secretproviderclass." + reloaderDomain + "reload", "secretproviderclasses.exclude." + reloaderDomain + "reload"},
}

func (t *translation) reloader() {
	before := t.found
	t.found = false
	defer func() { t.Reloader, t.found = t.found, t.found || before }()
	all := t.truth(reloaderDomain + "auto")
	search := t.truth(reloaderDomain + "search")
	all = t.reloaderMatch() || all
	t.Marked = t.Marked || search && len(t.Names) == 0 && !all
	for _, of := range reloaderKinds {
		alone := t.truth(of.auto)
		if (all || alone) && !slices.Contains(t.Kinds, of.kind) {
			t.Kinds = append(t.Kinds, of.kind)
		}
		t.names(of.reload, of.kind)
		t.exclude(of.exclude, of.kind)
	}
	t.reloaderIgnore()
	t.read("deployment."+reloaderDomain+"pause-period", false, func(text string) error {
		return assign(&t.MinInterval, text, parseInterval)
	})
	t.read(reloaderDomain+"rollout-strategy", false, func(text string) error {
		_, err := either("rollout", "restart")(text) // both make a new revision
		return err
	})
}

// reloaderMatch reads "match" on a workload: a boolean, which is auto, or names,
// in a dialect that a guide has spread.
func (t *translation) reloaderMatch() (all bool) {
	t.read(reloaderDomain+"match", true, func(text string) error {
		if truth, err := strconv.ParseBool(text); err == nil {
			all = truth
			return nil
		}
		sources, err := parsePairs(text)
		if err != nil {
			return err
		}
		for _, source := range sources {
			t.Names = append(t.Names, NamePattern{Kind: source.Kind, plain: source.Name})
		}
		return nil
	})
	return all
}

// reloaderIgnore reads "ignore" on a workload: names, in the guide's dialect.
func (t *translation) reloaderIgnore() {
	t.read(reloaderDomain+"ignore", false, func(text string) error {
		if truth, err := strconv.ParseBool(text); err == nil {
			if truth { // nothing counts
				t.Chooses, t.Kinds, t.Marked, t.Names = true, nil, false, nil
			}
			return nil
		}
		sources, err := parsePairs(text)
		t.Excluded = append(t.Excluded, sources...)
		return err
	})
}

func (t *translation) wave() {
	t.template = nil // it reads the workload's own annotations alone
	if !t.truth(waveDomain + "update-on-config-change") {
		return
	}
	for _, kind := range []Kind{ConfigMap, Secret} {
		if !slices.Contains(t.Kinds, kind) {
			t.Kinds = append(t.Kinds, kind)
		}
		t.read(waveDomain+"extra-"+string(kind)+"s", true, func(text string) error {
			list, err := items(text)
			for _, item := range list {
				// With another namespace in it, it names nothing: see Policy.Unnameable.
				t.Names = append(t.Names, NamePattern{Kind: kind, plain: strings.TrimPrefix(item, t.namespace+"/")})
			}
			return err
		})
	}
}

// read finds an annotation and reads it. chooses tells that it says which sources
// count.
func (t *translation) read(key string, chooses bool, read func(text string) error) {
	text, written := t.workload[key]
	if !written {
		if text, written = t.template[key]; !written {
			return
		}
	}
	t.found = true
	t.Chooses = t.Chooses || chooses
	if err := read(strings.TrimSpace(text)); err != nil {
		t.Faults = append(t.Faults, Fault{Origin: OfWorkload, Key: key, Value: text, Want: err.Error()})
	}
}

// truth reads a boolean as strconv.ParseBool does; what is not there is false.
func (t *translation) truth(key string) (truth bool) {
	t.read(key, true, func(text string) (err error) {
		if truth, err = strconv.ParseBool(text); err != nil {
			return errors.New("want true or false")
		}
		return nil
	})
	return truth
}

// names reads a comma list of regular expressions, each for a whole name.
func (t *translation) names(key string, kind Kind) {
	t.read(key, true, func(text string) error {
		list, err := items(text)
		left := mostParts
		for _, item := range list {
			pattern, parts, err := parseNamePattern(kind, item, left)
			if err != nil {
				return err
			}
			t.Names = append(t.Names, pattern)
			left -= parts
		}
		return err
	})
}

// exclude reads a comma list of names.
func (t *translation) exclude(key string, kind Kind) {
	t.read(key, false, func(text string) error {
		list, err := items(text)
		for _, item := range list {
			source := Source{kind, item}
			if !source.Nameable() {
				return fmt.Errorf("%q: no object can have this name", item)
			}
			t.Excluded = append(t.Excluded, source)
		}
		return err
	})
}

// parsePairs reads "configmap=a|secret=b".
func parsePairs(text string) ([]Source, error) {
	var sources []Source
	for pair := range strings.SplitSeq(text, "|") {
		if err := room(len(sources)); err != nil {
			return nil, err
		}
		kind, name, found := strings.Cut(strings.TrimSpace(pair), "=")
		source := Source{Kind(strings.TrimSpace(kind)), strings.TrimSpace(name)}
		if !found || !source.Kind.known() || !source.Nameable() {
			return nil, fmt.Errorf("%q: want true, false, or names such as configmap=a|secret=b", pair)
		}
		sources = append(sources, source)
	}
	return sources, nil
}

// foreignMarks reads Reloader's annotations on a source.
func foreignMarks(annotations map[string]string) (ignored, marked bool) {
	ignored, _ = strconv.ParseBool(annotations[reloaderDomain+"ignore"])
	marked, _ = strconv.ParseBool(annotations[reloaderDomain+"match"])
	return ignored, marked
}
