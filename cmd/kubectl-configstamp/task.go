package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/workload"
)

// task is one run of a command: what it was asked, and what it reads with.
type task struct {
	*plugin
	output objectPrinter
	// settings are those of the cluster, and namespace is the one that is asked about. readSettings reads both.
	settings  *clusterSettings
	namespace string
	// asked is what the Namespace says, nil before it is read.
	asked *knownNamespace

	dryRun string
	// changed reports that some object was changed.
	changed bool
}

// taskCommand completes a command that prints objects with -o.
func (p *plugin) taskCommand(command *cobra.Command, do func(ctx context.Context, o *task, args []string) error) *cobra.Command {
	o := &task{plugin: p, dryRun: noDryRun}
	o.output.addFlags(command)
	command.RunE = func(command *cobra.Command, args []string) error {
		if err := o.output.complete(); err != nil {
			return err
		}
		return do(command.Context(), o, args)
	}
	return command
}

// readSettings reads the cluster's settings. It prints which of them could not be read.
func (o *task) readSettings(ctx context.Context) (err error) {
	if o.settings, o.namespace, err = o.look(ctx, false); err == nil {
		o.notSeen(o.settings.Unread)
	}
	return err
}

// inNamespace returns what the Namespace says; the zero knownNamespace if the user may not read it.
func (o *task) inNamespace() knownNamespace {
	if o.asked == nil {
		o.asked = &knownNamespace{}
		if t, err := o.read("", "namespaces", o.namespace); err == nil {
			*o.asked = knownNamespace{Namespace: o.settings.namespaceOf(t.object()), Known: true}
		}
	}
	return *o.asked
}

// policyOf returns what counts for a workload of the namespace, as far as the user may read it. source is one that exists.
func (o *task) policyOf(object *workload.Object, source checksum.Source) checksum.Policy {
	return o.settings.PolicyOf(object, o.inNamespace().Settings, func(kind checksum.Kind) []string {
		if kind != source.Kind {
			return nil
		}
		return []string{source.Name}
	})
}

// source reads the metadata of a source of the namespace.
func (o *task) source(source checksum.Source) (*target, error) {
	return o.read(o.namespace, sourceResource(source.Kind).GroupResource().String(), source.Name, metadataOnly)
}

// words returns where texts are printed: with -o on stderr, as stdout has objects.
func (o *task) words() io.Writer {
	if o.output.wanted() {
		return o.text(o.ErrOut)
	}
	return o.text(o.Out)
}

// notSeen prints what could not be looked at.
func (o *task) notSeen(unseen []string) {
	list(o.text(o.ErrOut), "Not looked at:", unseen)
}

// warn prints warnings, as kubectl does.
func (o *task) warn(warnings ...string) {
	for _, warning := range warnings {
		fmt.Fprintln(o.text(o.ErrOut), "Warning: "+warning)
	}
}

// list prints texts under a heading, the first few of many.
func list(to io.Writer, heading string, texts []string) {
	const first = 20
	if len(texts) == 0 {
		return
	}
	fmt.Fprintln(to, heading)
	for _, text := range texts[:min(first, len(texts))] {
		paragraph(to, "  ", text)
	}
	if more := len(texts) - first; more > 0 {
		fmt.Fprintf(to, "  and %d more\n", more)
	}
}

// joined returns "a, b and c".
func joined(texts []string) string {
	if len(texts) < 2 {
		return strings.Join(texts, "")
	}
	return strings.Join(texts[:len(texts)-1], ", ") + " and " + texts[len(texts)-1]
}
