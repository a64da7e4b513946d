package harness

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The kinds of nodes that a cluster can have.
const (
	// NoNodes: Pods stay Pending.
	NoNodes = "none"
	// Kubelet is a real node, which runs containers; it needs root.
	Kubelet = "kubelet"
	// Kwok are nodes that say that their Pods are Ready.
	Kwok = "kwok"
)

// Wanted is what a package wants of its run, where it is not the usual.
type Wanted struct {
	// Node is the kind of nodes; NoNodes when it is empty.
	Node string
	// Up are further arguments of the driver's "up".
	Up []string
	// Options are what every test finds; Usual when Settle is zero.
	Options Options
	// Manifest is the file of e2e/testdata that is installed; everything.yaml when it
	// is empty. Namespaces are made before it.
	Manifest   string
	Namespaces []string
	// AsShipped: webhooks get as little time as the chart gives them, for who judges
	// what their silence costs; see atEase.
	AsShipped bool
	// Plain: processes are built without the race detector, which takes several times as
	// much memory, for who judges that.
	Plain bool
	// Audit is what is to be proven of the service account's rights, if anything.
	Audit *Audit
	// Identified: the API server shows webhooks that ask for it a client certificate of
	// APIServerName, which ClientAuthority signs.
	Identified bool
	// Alone is how many clusters more exclusive tests may have (see Run.Exclusive). They
	// are made when they are needed.
	Alone int
	// Pods: no process of configstamp is started here (there is no Product), because
	// it runs in Pods, as it does in production; see package pods.
	Pods bool

	number int // of a cluster of exclusive tests; 0 for the one that all share
}

func (w Wanted) node() string {
	if w.Node == "" {
		return NoNodes
	}
	return w.Node
}

// apart is what is wanted of the cluster of exclusive tests with a number.
func (w Wanted) apart(number int) Wanted {
	w.Alone, w.number = 0, number
	return w
}

func (w Wanted) options() Options {
	if w.Options.Settle == 0 {
		return Usual()
	}
	return w.Options
}

// manifest is all that the chart installs for this run.
func (w Wanted) manifest() ([]*unstructured.Unstructured, error) {
	file := w.Manifest
	if file == "" {
		file = everything
	}
	dir, err := root()
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(dir, "e2e", "testdata", file))
	if err != nil {
		return nil, fmt.Errorf("reading what is to be installed: %w; make generate writes it", err)
	}
	return parse(string(text))
}

// skipAll says how many tests do not run, and why.
func skipAll(m *testing.M, why string) int {
	names, err := listed(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	fmt.Printf("SKIPPED (%d tests): %s: %s\n", len(names), strings.Join(names, ", "), why)
	return 0
}

// listed are the names of a package's tests, which the testing package prints and
// tells nobody.
func listed(m *testing.M) ([]string, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("counting tests: %w", err)
	}
	out := os.Stdout
	os.Stdout = write
	err = flag.Set("test.list", "^Test")
	m.Run()
	os.Stdout = out
	if err := errors.Join(err, write.Close()); err != nil {
		return nil, fmt.Errorf("counting tests: %w", err)
	}
	text, err := io.ReadAll(read)
	if err != nil {
		return nil, fmt.Errorf("counting tests: %w", err)
	}
	return strings.Fields(string(text)), nil
}

// LoadImage builds a program of the project and brings it, as an image, to the
// cluster's real node; Pods want it with imagePullPolicy: Never.
func (r *Run) LoadImage(ctx context.Context, pkg, image string) error {
	binary := filepath.Join(r.Dir, "app")
	if err := build(ctx, ".", pkg, binary); err != nil {
		return err
	}
	_, err := r.cluster.command(ctx, "image", "--binary", binary, "--image", image, "--load")
	return err
}
