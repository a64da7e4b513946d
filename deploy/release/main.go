// Command release makes all that is released of one commit, in one folder: the image for two
// platforms as an OCI archive, the chart, the manifests to install without Helm, the kubectl
// plugin with its manifest for krew, a bill of materials (CycloneDX) of every program, the
// provenance of it all (SLSA, as an in-toto statement), and SHA256SUMS; with a key, signatures
// too. "make release" runs it; docs/releases.md is for those who release and verify.
//
// What comes out depends on the commit, the version, the image's name and Go alone, to the byte:
// no paths, no version control, no times but that of the commit. Signatures are new each time.
//
// To read: build.go compiles, image.go wraps the image, chart.go and changes.go make the chart
// and the manifests, plugin.go has the plugin built by deploy/krew, sbom.go says what a program
// was made of, provenance.go what the release was made of, sign.go signs.
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"golang.org/x/mod/semver"
)

// source is where the project lies.
const source = "https://github.com/configstamp/configstamp"

// sumsFile has the sum of every file that was not signed.
const sumsFile = "SHA256SUMS"

// release is what is asked for.
type release struct {
	version string    // such as v1.2.3
	commit  string    // its whole name
	made    time.Time // the time of the commit
	image   string    // what nodes pull, without a tag
	helm    string    // the program
	root    string    // the checkout
	out     string    // a folder

	index string // the digest of the image, when it is made
}

func main() {
	var r release
	var made int64
	var key string
	flag.StringVar(&r.version, "version", "", "version to release, such as v1.2.3")
	flag.StringVar(&r.commit, "commit", "", "whole name of the commit that is released")
	flag.Int64Var(&made, "time", 0, "time of the commit, in seconds since 1970")
	flag.StringVar(&r.image, "image", "configstamp", "what nodes pull, without a tag")
	flag.StringVar(&r.helm, "helm", "helm", "the helm to package the chart with")
	flag.StringVar(&r.root, "root", "../..", "the checkout")
	flag.StringVar(&r.out, "out", "../../dist/release", "folder to write to; what is in it is removed")
	flag.StringVar(&key, "key", "", "file of a private key to sign with, or env://NAME of a variable that holds it; empty: nothing is signed")
	flag.Parse()
	r.made = time.Unix(made, 0).UTC()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := r.run(ctx, key, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// run makes all of the release, and signs it if there is a key.
func (r *release) run(ctx context.Context, key string, to io.Writer) error {
	if err := r.check(); err != nil {
		return err
	}
	for _, path := range []*string{&r.root, &r.out} { // programs run elsewhere
		var err error
		if *path, err = filepath.Abs(*path); err != nil {
			return err
		}
	}
	if err := errors.Join(os.RemoveAll(r.out), os.MkdirAll(r.out, 0o755)); err != nil {
		return err
	}
	for _, step := range []struct {
		says string
		do   func(context.Context) error
	}{
		{"the image for " + strings.Join(architectures(), " and "), r.makeImage},
		{"the chart", r.makeChart},
		{"the manifests", r.makeManifests},
		{"the kubectl plugin for six platforms", r.makePlugin},
		{"the provenance", r.makeProvenance},
		{"the sums", r.makeSums},
	} {
		fmt.Fprintln(to, "Making", step.says)
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("making %s: %w", step.says, err)
		}
	}
	if key != "" {
		fmt.Fprintln(to, "Signing")
		if err := signAll(r.out, key); err != nil {
			return fmt.Errorf("signing: %w", err)
		}
	}
	sums, err := os.ReadFile(filepath.Join(r.out, sumsFile))
	if err == nil {
		_, err = to.Write(sums)
	}
	return err
}

// check says what is wrong with what is asked for.
func (r *release) check() error {
	if semver.Canonical(r.version) != r.version {
		return fmt.Errorf("VERSION is %q: want one such as v1.2.3 or v1.2.3-rc.1", r.version)
	}
	if !regexp.MustCompile(`^[0-9a-f]{40,64}$`).MatchString(r.commit) {
		return fmt.Errorf("the commit is %q: want its whole name", r.commit)
	}
	_, err := r.reference()
	return err
}

// short is how programs and labels name the commit. It is cut here: the length of what git
// prints depends on the clone.
func (r *release) short() string { return r.commit[:12] }

// number is the version as Helm writes it.
func (r *release) number() string { return strings.TrimPrefix(r.version, "v") }

// file is one of the release.
type file struct{ name, sum string }

// files are those of the release so far, sorted by name.
func (r *release) files() (all []file, err error) {
	entries, err := os.ReadDir(r.out)
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(r.out, entry.Name()))
		if err != nil {
			return nil, err
		}
		all = append(all, file{entry.Name(), sha256Of(content)})
	}
	return all, err
}

func (r *release) makeSums(context.Context) error {
	all, err := r.files()
	var sums bytes.Buffer
	for _, one := range all {
		fmt.Fprintf(&sums, "%s  %s\n", one.sum, one.name)
	}
	return errors.Join(err, r.write(sumsFile, sums.Bytes()))
}

func (r *release) write(name string, content []byte) error {
	return os.WriteFile(filepath.Join(r.out, name), content, 0o644)
}

func sha256Of(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}
