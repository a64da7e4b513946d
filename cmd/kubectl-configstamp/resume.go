package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/configstamp/configstamp/checksum"
)

func (p *plugin) resumeCommand() *cobra.Command {
	return p.orderCommand(&cobra.Command{
		Use:   "resume SOURCE",
		Short: "Continue a halted change, although a workload failed with it",
		Long: "Continues a halted change of a ConfigMap or Secret: failures until now no longer\n" +
			"count. The command writes configstamp.dev/resume on the source, with the API\n" +
			"server's time. The halted workloads then roll, in steps. The next failure halts them\n" +
			"again. If you put the old content back, or fix it, you need no resume: the\n" +
			"workloads continue by themselves.",
		Example: "  kubectl configstamp resume configmap/payment-api-config\n" +
			"  kubectl configstamp resume secret/db -n shop --dry-run=server",
		Args: cobra.RangeArgs(1, 2),
	}, func(ctx context.Context, o *task, args []string) error {
		source, err := sourceOf(args)
		if err != nil {
			return err
		}
		t, err := o.source(source)
		if err != nil {
			return err
		}
		now, err := o.serverTime()
		if err != nil {
			return err
		}
		// A time that is more than a minute ahead of the API server's resumes nothing. It has
		// whole seconds: what failed in this one counts too.
		value := at(now.Add(time.Second))
		return o.annotate(ctx, t, func() (map[string]*string, *result) {
			o.mayBeWrittenAgain(t, checksum.ResumeAnnotation)
			return map[string]*string{checksum.ResumeAnnotation: &value}, &result{
				target: t, did: "resumed", changed: true, wrote: checksum.ResumeAnnotation + "=" + value,
				why:  "failures of rollouts that began until now do not halt it any more; halted workloads go on, in steps, and the next failure halts it again",
				next: "kubectl configstamp wait " + t.words(),
			}
		})
	})
}
