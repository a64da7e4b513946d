package harness

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Run is one run of a test binary: a cluster, and configstamp in it.
type Run struct {
	// Product is nil when configstamp runs in Pods.
	Product   *Product
	Recorder  *Recorder
	Authority *Authority
	// Config and the clients are the administrator's, without a proxy.
	Config  *rest.Config
	Client  kubernetes.Interface
	Dynamic dynamic.Interface
	// Dir holds binaries, logs and kubeconfigs of this run.
	Dir string

	wanted  Wanted
	cluster *cluster
	alone   *alone
	stop    context.CancelFunc
	closing sync.Once
	closed  error
}

// Main is all that a TestMain does: it makes the run, gives it to use, and
// returns the exit code. Without EnvEnabled or EnvCluster nothing runs.
//
// What fails outside of any test, such as a cluster that does not come up, panics once
// the cluster is down: a package that merely fails without a failed test would be run
// again by gotestsum with no test at all, and pass.
func (w Wanted) Main(m *testing.M, use func(*Run) error) int {
	flag.Parse()
	if os.Getenv(EnvEnabled) == "" && os.Getenv(EnvCluster) == "" {
		fmt.Printf("skipped: these tests start a Kubernetes; %s=1 runs them (see e2e/README.md)\n", EnvEnabled)
		return 0
	}
	if flag.Lookup("test.list").Value.String() != "" {
		return m.Run()
	}
	if w.Node == Kubelet && os.Geteuid() != 0 {
		return skipAll(m, "they run real containers, which needs root")
	}
	if testing.Short() {
		w.Alone = min(w.Alone, 1)
	}
	w.moreAtOnce()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer cancel()
	begin := time.Now()
	run, err := Begin(ctx, w)
	if err != nil {
		panic(fmt.Sprintf("e2e: no test ran: %v", err))
	}
	stay := context.AfterFunc(ctx, func() {
		fmt.Fprintln(os.Stderr, "e2e: interrupted, cleaning up")
		_ = run.End()
		os.Exit(130)
	})
	fmt.Fprintf(os.Stderr, "e2e: ready after %.1fs; logs in %s\n", time.Since(begin).Seconds(), run.Dir)
	if err := use(run); err != nil {
		stay()
		panic(fmt.Sprintf("e2e: no test ran: %v", errors.Join(err, run.End())))
	}
	code := m.Run()
	stay()
	problems := run.finish()
	if w.Audit != nil {
		problems = append(problems, run.audited(code == 0)...)
	}
	if problems = slices.Compact(problems); len(problems) > 0 {
		panic("e2e: FAIL: " + strings.Join(problems, "\ne2e: FAIL: "))
	}
	if code == 0 && !kept() {
		for _, each := range run.all() {
			_ = os.RemoveAll(each.Dir)
		}
	}
	return code
}

// finish ends a run, and says what was wrong with its processes.
func (r *Run) finish() (problems []string) {
	for _, each := range r.all() {
		if each.Product != nil {
			each.Product.logGoroutines()
			problems = append(problems, each.Product.Problems()...)
		}
	}
	if err := r.End(); err != nil {
		problems = append(problems, err.Error())
	}
	for _, each := range r.all() {
		if each.Product != nil {
			problems = append(problems, each.Product.Problems()...)
		}
	}
	slices.Sort(problems)
	return problems
}

// moreAtOnce has more tests wait at a time than there are cores, unless the command
// line says how many.
func (w Wanted) moreAtOnce() {
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	switch {
	case given:
	case w.Alone > 0:
		_ = flag.Set("test.parallel", "100") // see Run.turn
	default:
		_ = flag.Set("test.parallel", strconv.Itoa(atOnce))
	}
}

// Begin makes a run; End must be called, whatever happens.
func Begin(ctx context.Context, wanted Wanted) (*Run, error) {
	dir, err := os.MkdirTemp("", "configstamp-e2e-")
	if err != nil {
		return nil, fmt.Errorf("beginning a run: %w", err)
	}
	r := &Run{Dir: dir, wanted: wanted, stop: func() {}, alone: newAlone()}
	if err := r.begin(ctx); err != nil {
		return nil, errors.Join(err, r.End())
	}
	return r, nil
}

func (r *Run) begin(ctx context.Context) error {
	driver, binary := filepath.Join(r.Dir, "cluster"), filepath.Join(r.Dir, "configstamp")
	built := make(chan error, 1)
	switch {
	case r.wanted.Pods:
		built <- nil // it comes as an image
	case r.wanted.Plain:
		go func() { built <- r.BuildShipped(ctx, binary, "e2e") }()
	default:
		go func() { built <- r.BuildProduct(ctx, binary) }()
	}
	if err := build(ctx, "e2e/cluster", "./cmd/cluster", driver); err != nil {
		return err
	}
	var err error
	wanted := r.wanted
	if r.wanted.Identified {
		args, err := r.identityArgs()
		if err != nil {
			return err
		}
		wanted.Up = slices.Concat(wanted.Up, args)
	}
	if r.wanted.Audit != nil {
		args, err := r.auditArgs()
		if err != nil {
			return err
		}
		wanted.Up = slices.Concat(wanted.Up, args)
	}
	if r.cluster, err = bringUp(ctx, driver, wanted); err != nil {
		return err
	}
	if err := <-built; err != nil {
		return err
	}
	if r.Config, err = clientcmd.BuildConfigFromFlags("", r.cluster.Kubeconfig); err != nil {
		return fmt.Errorf("reading the kubeconfig of cluster %s: %w", r.cluster.name, err)
	}
	r.Config.QPS = -1
	r.Config.WarningHandler = rest.NoWarnings{}
	if r.Client, err = kubernetes.NewForConfig(r.Config); err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	if r.Dynamic, err = dynamic.NewForConfig(r.Config); err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	r.stop = stop
	if r.Recorder, err = newRecorder(watching, r.Dynamic); err != nil {
		return err
	}
	if r.Authority, err = NewAuthority(r.cluster.HostAddress); err != nil || r.wanted.Pods {
		return err
	}
	return r.install(ctx, binary)
}

// BuildProduct builds configstamp with the race detector.
func (r *Run) BuildProduct(ctx context.Context, binary string, flags ...string) error {
	return build(ctx, ".", "./cmd/configstamp", binary, append([]string{"-race"}, flags...)...)
}

// BuildShipped builds configstamp as it is shipped.
func (r *Run) BuildShipped(ctx context.Context, binary, version string) error {
	return build(ctx, ".", "./cmd/configstamp", binary, "-trimpath", "-ldflags", "-s -w -X main.version="+version)
}

func (r *Run) install(ctx context.Context, binary string) (err error) {
	if r.Product, err = newProduct(binary, r.Dir, r.Authority, r.cluster, r.Config.CAData, r.wanted); err != nil {
		return err
	}
	if err := r.installChart(ctx); err != nil {
		return err
	}
	identity, err := token(ctx, r.Client)
	if err != nil {
		return err
	}
	if err := r.Product.identify(r.Authority, identity); err != nil {
		return err
	}
	return r.Product.Start(ctx)
}

func (r *Run) installChart(ctx context.Context) error {
	for _, name := range r.wanted.Namespaces {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := r.Client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("making a namespace for the run: %w", err)
		}
	}
	objects, err := r.wanted.manifest()
	if err != nil {
		return err
	}
	if !r.wanted.AsShipped {
		if err := atEase(objects); err != nil {
			return err
		}
	}
	return installProduct(ctx, r.Dynamic, objects, r.Product.URLs(), r.Authority.PEM)
}

// End stops the product, looks how its processes end, and takes the cluster down;
// those of exclusive tests too.
func (r *Run) End() error {
	r.closing.Do(func() {
		var errs []error
		for _, own := range r.all()[1:] {
			errs = append(errs, own.End())
		}
		if r.Product != nil {
			errs = append(errs, r.Product.Stop())
			r.Product.Balancer.close()
			r.Product.Impact.close()
			for _, process := range r.Product.All() {
				_ = process.Proxy.Close()
			}
		}
		r.stop()
		if r.cluster != nil {
			errs = append(errs, r.cluster.takeDown())
		}
		r.closed = errors.Join(errs...)
	})
	return r.closed
}

// settle is the --settle of the product.
func (r *Run) settle() time.Duration {
	if r.Product == nil {
		return 2 * time.Second // what it is by default
	}
	return r.Product.settle()
}

// logs is the end of what the product said, for failures.
func (r *Run) logs(lines int, parts ...string) string {
	if r.Product != nil {
		return r.Product.Logs(lines, parts...)
	}
	said, err := r.Kubectl("", "--namespace="+OwnNamespace, "logs", "--selector=app.kubernetes.io/name=configstamp",
		"--all-containers", "--prefix", "--tail", strconv.Itoa(lines))
	if err != nil {
		return err.Error()
	}
	return said.Stdout + said.Stderr
}

// Install creates what belongs to no namespace, and deletes it at the end.
func (r *Run) Install(t testing.TB, manifest string) {
	t.Helper()
	r = r.Of(t)
	objects, err := parse(manifest)
	Must(t, err)
	for _, object := range objects {
		to, err := client(r.Dynamic, object.GetKind(), object.GetNamespace())
		Must(t, err)
		_, err = to.Create(context.Background(), object, metav1.CreateOptions{})
		Must(t, err)
		t.Cleanup(func() { _ = to.Delete(context.Background(), object.GetName(), metav1.DeleteOptions{}) })
	}
}

// Must stops the test when something that is no question of it fails.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// title shortens a test's name to a namespace's.
func title(t testing.TB) string {
	var name strings.Builder
	for _, r := range strings.TrimPrefix(t.Name(), "Test") {
		switch {
		case r >= 'A' && r <= 'Z':
			name.WriteRune(r - 'A' + 'a')
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			name.WriteRune(r)
		default:
			name.WriteRune('-')
		}
	}
	text := name.String()
	return strings.Trim(text[:min(len(text), 40)], "-")
}
