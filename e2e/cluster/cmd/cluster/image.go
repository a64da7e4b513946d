package main

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/configstamp/configstamp/e2e/cluster/image"
	"github.com/configstamp/configstamp/e2e/cluster/lifecycle"
	"github.com/configstamp/configstamp/e2e/cluster/node"
	"github.com/configstamp/configstamp/e2e/cluster/state"
)

func imageCommand(c *common) *cobra.Command {
	var binary, to string
	var files []string
	var load bool
	spec := image.Spec{}
	cmd := &cobra.Command{
		Use:   "image --binary FILE --image NAME:TAG",
		Short: "Wrap a static program into an image, as a tarball, and perhaps load it",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if to == "" && !load {
				return errors.New("nothing to do with the image: give --output FILE, or --load")
			}
			if err := wantStatic(binary); err != nil {
				return err
			}
			inImage := "/" + filepath.Base(binary)
			spec.Files = []image.File{{Source: binary, Destination: inImage, Executable: true}}
			if len(spec.Entrypoint) == 0 {
				spec.Entrypoint = []string{inImage}
			}
			for _, file := range files {
				source, destination, found := strings.Cut(file, ":")
				if !found || !path.IsAbs(destination) {
					return fmt.Errorf("--file=%s: give source:/absolute/path/in/the/image", file)
				}
				spec.Files = append(spec.Files, image.File{Source: source, Destination: destination, Executable: executable(source)})
			}
			if to == "" {
				dir, err := os.MkdirTemp("", "configstamp-image-")
				if err != nil {
					return fmt.Errorf("making a place for the image: %w", err)
				}
				defer os.RemoveAll(dir)
				to = filepath.Join(dir, "image.tar")
			}
			if err := image.Write(spec, to); err != nil {
				return err
			}
			if !load {
				return nil
			}
			return loadImage(cmd, c, to)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&binary, "binary", "", "the program, statically linked for Linux; it is put at / under its own name")
	flags.StringVar(&spec.Name, "image", "", "what manifests call the image, such as configstamp:dev")
	flags.StringVar(&spec.User, "user", "65532:65532", "who the program runs as")
	flags.StringArrayVar(&spec.Entrypoint, "entrypoint", nil, "instead of the program alone; repeatable, one word each")
	flags.StringArrayVar(&spec.Env, "env", nil, "KEY=value in the image; repeatable")
	flags.StringArrayVar(&files, "file", nil, "source:/destination of a further file; repeatable")
	flags.StringVarP(&to, "output", "o", "", "where to write the tarball; a temporary file if it is only loaded")
	flags.BoolVar(&load, "load", false, "load it into the cluster")
	for _, required := range []string{"binary", "image"} {
		if err := cmd.MarkFlagRequired(required); err != nil {
			panic(err) // the flag is defined above
		}
	}
	return cmd
}

// wantStatic refuses a program that needs a dynamic linker, which the image does not have.
func wantStatic(binary string) error {
	program, err := elf.Open(binary)
	if err != nil {
		return fmt.Errorf("reading the program %s: %w", binary, err)
	}
	defer program.Close()
	if slices.ContainsFunc(program.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		return fmt.Errorf("%s is linked dynamically, and an image has nothing but the program: build it with CGO_ENABLED=0 (Debian's static busybox is the package busybox-static)", binary)
	}
	return nil
}

func executable(file string) bool {
	info, err := os.Stat(file)
	return err == nil && info.Mode()&0o111 != 0
}

func loadImageCommand(c *common) *cobra.Command {
	return &cobra.Command{
		Use:   "load-image TARBALL",
		Short: "Bring the images in a tarball (as docker save writes it, or an OCI archive) to a cluster's node",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return loadImage(cmd, c, args[0])
		},
	}
}

func loadImage(cmd *cobra.Command, c *common, tarball string) error {
	cluster, err := c.cluster()
	if err != nil {
		return err
	}
	h, err := hostWithoutSources()
	if err != nil {
		return err
	}
	if cluster.Node != state.NodeKubelet {
		h.Log.Step("cluster %s runs no containers (--node=%s): no image is loaded", cluster.Name, cluster.Node)
		return nil
	}
	if err := lifecycle.NeedRoot(cluster); err != nil {
		return err
	}
	if err := node.LoadImage(cmd.Context(), cluster, tarball); err != nil {
		return err
	}
	h.Log.Step("loaded %s into cluster %s", filepath.Base(tarball), cluster.Name)
	return nil
}
