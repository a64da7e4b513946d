package main

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
)

// objectPrinter prints objects for -o, in the formats of kubectl.
type objectPrinter struct {
	flags   *genericclioptions.PrintFlags
	printer printers.ResourcePrinter
}

// addFlags adds -o, and what belongs to it.
func (o *objectPrinter) addFlags(command *cobra.Command) {
	o.flags = genericclioptions.NewPrintFlags("")
	o.flags.AddFlags(command)
	complete(command, "output", o.flags.AllowedFormats()...)
}

// complete has a shell complete the values of a flag.
func complete(command *cobra.Command, flag string, values ...string) {
	if err := command.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // there is no such flag
	}
}

// complete reads the flags. Without -o objects are not printed.
func (o *objectPrinter) complete() (err error) {
	if *o.flags.OutputFormat == "" && *o.flags.TemplatePrinterFlags.TemplateArgument == "" {
		return nil
	}
	if o.printer, err = o.flags.ToPrinter(); err != nil {
		return fmt.Errorf("reading --output: %w", err)
	}
	return nil
}

// wanted reports whether objects are to be printed.
func (o *objectPrinter) wanted() bool { return o.printer != nil }

// object prints one object.
func (o *objectPrinter) object(to io.Writer, object runtime.Object) error {
	if err := o.printer.PrintObj(object, to); err != nil {
		return fmt.Errorf("printing an object: %w", err)
	}
	return nil
}

// printable returns a text of the cluster as it may be printed: without letters that control a terminal, or that cannot
// be seen. Lines and tabs stay.
func printable(text string) string {
	return strings.Map(func(letter rune) rune {
		if letter == '\n' || letter == '\t' || unicode.IsPrint(letter) {
			return letter
		}
		return -1
	}, text)
}

// text returns a writer of texts for people, which makes them printable.
func (p *plugin) text(to io.Writer) io.Writer { return printableWriter{to} }

type printableWriter struct{ to io.Writer }

// Write implements io.Writer. A letter comes in one piece, as texts are written whole.
func (w printableWriter) Write(text []byte) (int, error) {
	if _, err := io.WriteString(w.to, printable(string(text))); err != nil {
		return 0, err
	}
	return len(text), nil
}

// at is how all commands print a time.
func at(when time.Time) string { return when.UTC().Format(time.RFC3339) }
