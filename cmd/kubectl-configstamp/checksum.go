package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/inspect"
	"github.com/configstamp/configstamp/internal/manifest"
	"github.com/configstamp/configstamp/internal/workload"
)

// checksumOptions are the flags of the command.
type checksumOptions struct {
	files          filesOptions
	keyFile        string
	allowGuessable bool
	workloads      []string
}

func (p *plugin) checksumCommand() *cobra.Command {
	var o checksumOptions
	command := &cobra.Command{
		Use:   "checksum -f FILE...",
		Short: "Write checksum annotations into manifests, for pipelines without a webhook",
		Long: "Reads manifests and prints them again. Each pod template gets an annotation, such as\n" +
			"checksum/configmap.web-message, for each ConfigMap and Secret that it uses and that\n" +
			"is in the same files. So when a source changes and the manifests are applied, the\n" +
			"workloads that use it roll out, as with Helm's checksum/config. Nothing else\n" +
			"changes: comments, order, quotes and separators stay. The cluster is not asked.\n\n" +
			"Only the keys that a pod uses count. The annotations of configstamp's policy are\n" +
			"followed (only, ignore, ignore-keys, also, restart-on). Sources that are not in the\n" +
			"files are named on stderr. Jobs and Pods stay as they are, because the API server\n" +
			"refuses to change their pod template.\n\n" +
			"People who can read a workload can try out guesses of a Secret against its plain\n" +
			"checksum. So Secrets get a checksum only with a key, or with --allow-guessable.",
		Example: "  helm template shop ./chart | kubectl configstamp checksum -f - | kubectl apply -f -\n" +
			"  kubectl configstamp checksum -f deploy/ -R -n shop > all.yaml\n" +
			"  kubectl configstamp checksum -f web.yaml -f config.yaml --key-file checksum.key",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return p.checksum(&o) },
	}
	flags := command.Flags()
	o.files.add(command)
	flags.StringVar(&o.keyFile, "key-file", "", "file with a key of 32 bytes or more, made by: openssl rand -hex 32; with it Secrets get keyed checksums")
	flags.BoolVar(&o.allowGuessable, "allow-guessable", false, "write plain checksums of Secrets; people who see them can try out guesses of the values")
	flags.StringArrayVar(&o.workloads, "workload", nil, "custom kind with a pod template, as group/version/resource=path.to.template; may be repeated; Argo Rollouts, DeploymentConfigs, CloneSets and Knative Services are known")
	command.MarkFlagsMutuallyExclusive("key-file", "allow-guessable")
	return command
}

func (p *plugin) checksum(o *checksumOptions) error {
	settings, err := inspect.Defaults()
	if err != nil {
		return err
	}
	options := manifest.Options{Namespace: *p.config.Namespace, Policy: settings.Policy, Kinds: settings.Kinds}
	if options.Secrets, err = o.hash(); err != nil {
		return err
	}
	for _, text := range o.workloads {
		kind, err := workload.ParseKind(text)
		if err != nil {
			return err
		}
		options.Kinds = options.Kinds.With(kind)
	}
	files, err := o.files.read(p.In)
	if err != nil {
		return err
	}
	result, err := manifest.Annotate(files, options)
	if err != nil {
		return err
	}
	for _, warning := range result.Warnings {
		fmt.Fprintln(p.ErrOut, "Warning: "+warning)
	}
	if _, err := p.Out.Write(manifest.Join(result.Texts)); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return nil
}

// hash makes the checksums of Secrets, nil where there are to be none.
func (o *checksumOptions) hash() (*checksum.AnnotationHash, error) {
	if o.keyFile == "" {
		if o.allowGuessable {
			return &checksum.AnnotationHash{}, nil
		}
		return nil, nil
	}
	material, err := readKey(o.keyFile)
	if err != nil {
		return nil, err
	}
	hash, err := checksum.KeyedHash(material)
	if err != nil {
		return nil, fmt.Errorf("reading --key-file %s: %w: openssl rand -hex 32 > %s", o.keyFile, err, o.keyFile)
	}
	return &hash, nil
}
