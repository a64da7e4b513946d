package manifest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/workload"
)

// Options say how checksums are made.
type Options struct {
	// Namespace is that of manifests that name none; "": they match each other.
	Namespace string
	// Policy is what counts where nothing in the files says otherwise.
	Policy checksum.Policy
	// Kinds are those of workloads. Those whose template is for good, such as Job's,
	// are left as they are: the API server refuses another template.
	Kinds workload.Table
	// Secrets makes the values of Secrets; nil: they get none.
	Secrets *checksum.AnnotationHash
}

// Result is what came of it.
type Result struct {
	// Texts are the files, in their order.
	Texts [][]byte
	// Warnings are what people should know, in the order of the files.
	Warnings []string
}

// Annotate writes the annotations. With an error there is no result; it tells of
// everything that is wrong, with file and line, and quotes no content.
func Annotate(files []File, o Options) (Result, error) {
	documents := make([][]*document, len(files))
	var errs []error
	for i, file := range files {
		var err error
		documents[i], err = read(file)
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return Result{}, err
	}
	b := &bundle{options: o, sources: map[located]found{}, settings: map[string]map[string]string{}}
	for _, of := range documents {
		errs = append(errs, b.collect(of))
	}
	result := Result{Texts: make([][]byte, len(files))}
	for i, of := range documents {
		for _, d := range of {
			text, err := b.annotate(d)
			errs = append(errs, err)
			result.Texts[i] = append(result.Texts[i], text...)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return Result{}, err
	}
	b.warnOfSecrets()
	result.Warnings = b.warnings
	return result, nil
}

// located is a source in its namespace.
type located struct {
	namespace string
	source    checksum.Source
}

// found is a source in the files.
type found struct {
	content *checksum.Content
	place   string
}

// bundle is what all files together say.
type bundle struct {
	options  Options
	sources  map[located]found
	settings map[string]map[string]string // of Namespaces, by name
	warnings []string
	unkeyed  []string // Secrets that get no checksum
}

func (b *bundle) warn(format string, args ...any) {
	b.warnings = append(b.warnings, fmt.Sprintf(format, args...))
}

// namespaceOf is where an object will be.
func (b *bundle) namespaceOf(o *object) string {
	if o.namespace == "" {
		return b.options.Namespace
	}
	return o.namespace
}

// collect takes the sources and the Namespaces of some documents.
func (b *bundle) collect(documents []*document) error {
	var errs []error
	for _, d := range documents {
		for _, o := range d.objects() {
			if o.kind == "Namespace" && o.group == "" {
				b.settings[o.name] = o.namespaceSettings()
			}
			source, is := o.source()
			if !is {
				continue
			}
			content, err := o.content(source.Kind)
			errs = append(errs, err)
			at := located{b.namespaceOf(o), source}
			if before, twice := b.sources[at]; twice {
				b.warn("%s: %s occurs twice, first at %s: this one counts", o.place(), source, before.place)
			}
			b.sources[at] = found{content, o.place()}
		}
	}
	return errors.Join(errs...)
}

// annotate is a document with annotations on its pod templates.
func (b *bundle) annotate(d *document) ([]byte, error) {
	e := editor{document: d}
	var errs []error
	for _, o := range d.objects() {
		kind, is := o.workloadKind(b.options.Kinds.Readmitted())
		if !is || o.labels[checksum.InjectLabel] == checksum.InjectDisabled {
			continue
		}
		references, err := o.references(kind)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if wanted := b.wanted(o, references); len(wanted) > 0 {
			errs = append(errs, e.annotate(o, kind.Template, wanted))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return e.finish()
}

// entry is an annotation.
type entry struct{ key, value string }

// wanted are the annotations that a workload should have, sorted by source.
func (b *bundle) wanted(o *object, references []checksum.Reference) []entry {
	namespace := b.namespaceOf(o)
	policy := b.options.Policy.With(
		checksum.Level{Origin: checksum.OfWorkload, Annotations: o.annotations},
		checksum.Level{Origin: checksum.OfNamespace, Annotations: b.settings[namespace]})
	for _, fault := range policy.Faults {
		b.warn("%s: %s: %s; this setting is ignored here", o.place(), o, fault)
	}
	var entries []entry
	var absent []string
	for _, s := range checksum.Selections(references, policy) {
		in, there := b.sources[located{namespace, s.Source}]
		if !there {
			if !s.HoldOnly {
				absent = append(absent, s.Source.String()+b.elsewhere(s.Source, namespace))
			}
			continue
		}
		if value, counts := b.value(namespace, s, in.content); counts {
			if key, missing := s.Missing(in.content); missing {
				b.warn("%s: %s needs key %q, which %s at %s does not have: its pods cannot start; no checksum is written for it", o.place(), o, key, s.Source, in.place)
				continue
			}
			entries = append(entries, entry{checksum.AnnotationKey(s.Source), value})
		}
	}
	if len(absent) > 0 {
		b.warn("%s: %s uses sources that are not in these files: %s; no checksum is written for them, and a change of them rolls out nothing", o.place(), o, strings.Join(absent, ", "))
	}
	return entries
}

// value is that of a source that is in the files. A Secret without a key to hash it
// with has none.
func (b *bundle) value(namespace string, s checksum.Selection, content *checksum.Content) (value string, counts bool) {
	hash := checksum.AnnotationHash{}
	if s.Source.Kind == checksum.Secret && b.options.Secrets != nil {
		hash = *b.options.Secrets
	}
	value, counts = hash.Of(namespace, s, content)
	if counts && s.Source.Kind == checksum.Secret && b.options.Secrets == nil {
		b.unkeyed = append(b.unkeyed, s.Source.String())
		return "", false
	}
	return value, counts
}

// elsewhere tells of a source of that name in the files that is not the workload's,
// where one of the two manifests names no namespace, and -n does not say which it is.
func (b *bundle) elsewhere(source checksum.Source, namespace string) string {
	if in, there := b.sources[located{"", source}]; there {
		return fmt.Sprintf(" (one without a namespace is at %s: give its namespace with -n)", in.place)
	}
	if namespace != "" {
		return ""
	}
	var others []string
	for at, in := range b.sources {
		if at.source == source {
			others = append(others, fmt.Sprintf(" (one of namespace %s is at %s: give the workload's namespace with -n)", at.namespace, in.place))
		}
	}
	if len(others) == 0 {
		return ""
	}
	return slices.Min(others)
}

// mostNames is how many names a warning gives.
const mostNames = 10

// warnOfSecrets tells which Secrets have no checksum, and what to do.
func (b *bundle) warnOfSecrets() {
	slices.Sort(b.unkeyed)
	names := slices.Compact(b.unkeyed)
	if len(names) == 0 {
		return
	}
	more := ""
	if len(names) > mostNames {
		more = fmt.Sprintf(" and %d more", len(names)-mostNames)
		names = names[:mostNames]
	}
	b.warn("no checksum is written for %s%s: a plain one lets everybody who can read the workload try out guesses of the Secret; "+
		"pass --key-file with a key (openssl rand -hex 32 > key), or --allow-guessable where nothing in them can be guessed", strings.Join(names, ", "), more)
}
