package checksum

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// inject is the label that opts in and out, as a row beside the table of settings.
var inject = Setting{key: InjectLabel, On: onObjects, label: true} //nolint:gochecknoglobals // nothing changes it

// on reports whether a setting may stand somewhere.
func (s *Setting) on(at Origin) bool { return strings.Contains(s.On, string(at)) }

// written is how a setting is named: with what it is.
func (s *Setting) written() string { return form(s.label) + " " + s.key }

func article(label bool) string {
	if label {
		return "a label"
	}
	return "an annotation"
}

func form(label bool) string {
	if label {
		return "label"
	}
	return "annotation"
}

// place says where a setting belongs, and for an Origin where something stands.
func (s *Setting) place() string {
	switch {
	case s.on(OfWorkload):
		return "a workload or its Namespace"
	case s.on(OfSource):
		return OfSource.place()
	}
	return OfNamespace.place()
}

func (o Origin) place() string {
	switch o {
	case OfSource:
		return "a ConfigMap or Secret"
	case OfWorkload, OfNamespace, OfTemplate, OfFlag:
	}
	return "a " + string(o)
}

// NearMisses tells of labels and annotations that were probably meant for us and have no
// effect: they are misspelt, have a value that means nothing, or stand where nobody reads
// them. A setting with a value that cannot be read is no near miss, but a Fault. Sorted by
// what is written; nil when there are none.
func NearMisses(at Origin, labels, annotations map[string]string) []Finding {
	var found []Finding
	for key, value := range labels {
		if finding, missed := nearMiss(at, key, true, value); missed {
			found = append(found, finding)
		}
	}
	for key := range annotations {
		if finding, missed := nearMiss(at, key, false, ""); missed {
			found = append(found, finding)
		}
	}
	slices.SortFunc(found, func(a, b Finding) int { return cmp.Compare(a.Key, b.Key) })
	return found
}

// nearMiss judges one label, or one annotation. An annotation's value is not looked at.
func nearMiss(at Origin, key string, label bool, value string) (finding Finding, missed bool) {
	if !mayBeOurs(key) || isOurs(key) {
		return Finding{}, false
	}
	domain, name, _ := strings.Cut(key, "/")
	meant, exact := meantBy(name)
	ours := domain+"/" == settingPrefix
	if !ours && meant == nil {
		return Finding{}, false // somebody else's, of a similar name
	}
	finding = Finding{Key: form(label) + " " + key, Place: at}
	switch {
	case !ours || !exact:
		finding.Reason = NoSetting
		if meant != nil {
			finding.Text = "; did you mean the " + meant.written()
			if !meant.on(at) {
				finding.Text += " on " + meant.place()
			}
			finding.Text += "?"
		}
	case at == OfTemplate:
		finding.Reason, finding.Text = NoTemplateSetting, " as "+article(meant.label)
	case !meant.on(at):
		finding.Reason, finding.Text = OtherPlace, meant.place()
	case label && !meant.label:
		finding.Reason = NoLabel
	case !label && meant.label:
		finding.Reason = NoAnnotation
	case label:
		finding.Reason, finding.Text = NoValue, injectFault(at, value)
		return finding, finding.Text != ""
	default:
		return Finding{}, false
	}
	return finding, true
}

// injectFault says what is wrong with a value of the label inject, "" when nothing is.
func injectFault(at Origin, value string) string {
	if value == InjectEnabled || value == InjectDisabled {
		return ""
	}
	text, meant := fmt.Sprintf("%q opts nothing in: want enabled", value), ""
	if at == OfWorkload {
		text = fmt.Sprintf("%q opts neither in nor out: want enabled or disabled", value)
	}
	switch strings.ToLower(value) {
	case "true", "yes", "on", "1":
		meant = InjectEnabled
	case "false", "no", "off", "0":
		meant = InjectDisabled
	default:
		meant = nearest(value, []string{InjectEnabled, InjectDisabled})
	}
	if meant == InjectEnabled || meant != "" && at == OfWorkload {
		text += "; did you mean " + meant + "?"
	}
	return text
}

// Referenced is what some workloads refer to; nil is nothing.
type Referenced struct {
	sources map[Source]bool
	foreign []*Foreign
}

// With adds what one more workload refers to.
func (r *Referenced) With(references []Reference, foreign *Foreign) *Referenced {
	if r == nil {
		r = &Referenced{sources: map[Source]bool{}}
	}
	for i := range references {
		r.sources[references[i].Source] = true
	}
	if foreign != nil && len(foreign.Names) > 0 {
		r.foreign = append(r.foreign, foreign)
	}
	return r
}

// has reports whether a source is referred to.
func (r *Referenced) has(source Source) bool {
	return r.sources[source] || slices.ContainsFunc(r.foreign, func(f *Foreign) bool { return f.Named(source) })
}

// Lacks tells of sources that the setting only names, without a glob, and nobody refers to.
func (r *Referenced) Lacks(settings map[string]string) []Finding {
	patterns, err := parseSourcePatterns(settings[onlySetting])
	if err != nil {
		return nil // which is told of as a Fault
	}
	also, _ := parseSources(settings[alsoSetting])
	var found []Finding
	for _, pattern := range patterns {
		source := Source(pattern)
		if isGlob(pattern.Name) || slices.Contains(also, source) || r.has(source) {
			continue
		}
		finding := Finding{Reason: Unnamed, Source: source, Text: "; correct the name, or remove it"}
		if meant := nearest(source.String(), r.names()); meant != "" {
			finding.Text = "; did you mean " + meant + "?"
		}
		found = append(found, finding)
	}
	return found
}

func (r *Referenced) names() []string {
	names := make([]string, 0, len(r.sources))
	for source := range r.sources {
		names = append(names, source.String())
	}
	slices.Sort(names)
	return names
}

// NamesOnly reports whether settings have the setting only.
func NamesOnly(settings map[string]string) bool { return settings[onlySetting] != "" }

// Unreadable tells which settings of an object cannot be read.
func Unreadable(at Origin, settings map[string]string) (found []Finding) {
	if len(settings) == 0 {
		return nil
	}
	policy := DefaultPolicy().With(Level{at, settings})
	for _, fault := range policy.Faults {
		found = append(found, fault.Finding())
	}
	if policy.PinFault != nil {
		found = append(found, Finding{Reason: PinUnreadable, Text: policy.PinFault.Error()})
	}
	return found
}

// ourDomain is what our keys begin with, less the top level.
const ourDomain = "configstamp"

// mayBeOurs reports whether a label or annotation is ours by its prefix, or was probably
// meant to be: configstamp.io/, configstmap.dev/. A stamp is not.
func mayBeOurs(key string) bool {
	domain, _, cut := strings.Cut(key, "/")
	return cut && isNearOurs(domain)
}

// isNearOurs judges what stands before the slash. configstamp.teams.example.com is
// somebody's own.
func isNearOurs(domain string) bool {
	first, _, _ := strings.Cut(domain, ".")
	return len(domain) < len(settingPrefix)+nearBy && distance(first, ourDomain) <= nearBy
}

// meantBy finds the setting of a name, or the one that was probably meant; exact tells
// which. nil: none.
func meantBy(name string) (meant *Setting, exact bool) {
	all := [settingCount + 1]*Setting{&inject}
	names := [settingCount + 1]string{inject.Name()}
	for i := range settings {
		all[i+1], names[i+1] = &settings[i], settings[i].Name()
	}
	found := slices.Index(names[:], name)
	if exact = found >= 0; !exact {
		found = slices.Index(names[:], nearest(name, names[:]))
	}
	if found < 0 {
		return nil, false
	}
	return all[found], exact
}

// nearBy is how many letters may be wrong in what was probably meant, as in cobra's
// SuggestionsMinimumDistance.
const nearBy = 2

// unfinished is how many letters tell of an unfinished word rather than of a wrong one.
const unfinished = 3

// nearest is the word that was probably meant by a text: the first one that begins with it,
// or, where that is short, the one with the fewest letters wrong. "": none.
func nearest(text string, words []string) (meant string) {
	begun := slices.IndexFunc(words, func(word string) bool { return text != "" && strings.HasPrefix(word, strings.ToLower(text)) })
	if begun >= 0 && len(text) >= unfinished {
		return words[begun]
	}
	least := nearBy + 1
	for _, word := range words {
		if d := distance(text, word); d < least && d < len(word) {
			meant, least = word, d
		}
	}
	if meant == "" && begun >= 0 {
		return words[begun]
	}
	return meant
}

// distance is how many letters have to be added, taken away or replaced (Levenshtein) to
// make one text of the other, whatever their case; more than nearBy is not counted further.
func distance(a, b string) int {
	a, b = strings.ToLower(a), strings.ToLower(b)
	if max(len(a)-len(b), len(b)-len(a)) > nearBy {
		return nearBy + 1
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := corner
			if a[i] != b[j] {
				replaced++
			}
			corner = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
