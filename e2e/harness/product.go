package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configstamp/configstamp/e2e/proxy"
)

const replicas = 2

// Options are the flags of the processes that tests vary.
type Options struct {
	// Settle is --settle.
	Settle time.Duration
	// Webhook and Controller are further flags; the last of a name wins.
	Webhook, Controller []string
}

// Usual are the options that every test finds.
func Usual() Options {
	dialects := []string{"--dialects=reloader,wave"} // they change nothing for who does not speak them
	return Options{Settle: Settle, Webhook: dialects, Controller: dialects}
}

// SelfManaged are the options with which all processes sign their certificates
// themselves and have them trusted. Here the API server calls them by an address
// that no such certificate is for, so that it gets no answer: TrustAgain undoes that.
func (o Options) SelfManaged() Options {
	signs := []string{"--self-managed-certificate", "--tls-cert-file=", "--tls-key-file="}
	o.Webhook, o.Controller = slices.Concat(o.Webhook, signs), slices.Concat(o.Controller, signs)
	return o
}

func (o Options) equal(other Options) bool {
	return o.Settle == other.Settle && slices.Equal(o.Webhook, other.Webhook) && slices.Equal(o.Controller, other.Controller)
}

// Product is an installation of configstamp: two replicas of each process.
type Product struct {
	Webhooks, Controllers []*Process
	// Balancer stands before the webhooks, and Impact before what the controllers say of
	// edits.
	Balancer, Impact *Balancer

	dir       string
	freshness time.Duration // --freshness-timeout
	mu        sync.Mutex
	options   Options
	everyday  Options // what usual brings back
}

func newProduct(binary, dir string, authority *Authority, c *cluster, ca []byte, wanted Wanted) (*Product, error) {
	options, freshness := wanted.options(), easyFreshness
	if wanted.AsShipped {
		freshness = 2 * time.Second // for two cores that run everything at once; webhook.yaml gives the whole answer 3 s
	}
	balancer, err := newBalancer(c.HostAddress, replicas)
	if err != nil {
		return nil, err
	}
	impact, err := newBalancer(c.HostAddress, replicas)
	if err != nil {
		return nil, err
	}
	p := &Product{Balancer: balancer, Impact: impact, dir: dir, freshness: freshness, options: options, everyday: options}
	pair, err := authority.tlsPair()
	if err != nil {
		return nil, err
	}
	for i := range 2 * replicas {
		front, err := proxy.New(c.Server, ca, pair)
		if err != nil {
			return nil, err
		}
		if i < replicas {
			process := newProcess(fmt.Sprintf("webhook-%d", i), "Serving admissions", binary, dir, front)
			process.standsBehind(balancer, i)
			p.Webhooks = append(p.Webhooks, process)
		} else {
			process := newProcess(fmt.Sprintf("controller-%d", i-replicas), "Serving impact warnings", binary, dir, front)
			process.standsBehind(impact, i-replicas)
			p.Controllers = append(p.Controllers, process)
		}
	}
	certificate, key, err := authority.Pair(time.Now().Add(24 * time.Hour))
	if err != nil {
		return nil, err
	}
	return p, errors.Join(os.WriteFile(p.CertificateFile(), certificate, 0o600), os.WriteFile(p.KeyFile(), key, 0o600))
}

// URLs is where the API server is to call.
func (p *Product) URLs() URLs {
	return URLs{Stamps: p.Balancer.URL(), Warns: p.Impact.URL()}
}

// CertificateFile is where all processes find their certificate, and KeyFile its key.
func (p *Product) CertificateFile() string { return filepath.Join(p.dir, "tls.crt") }

// KeyFile is the key of CertificateFile.
func (p *Product) KeyFile() string { return filepath.Join(p.dir, "tls.key") }

// identify tells each process where its API server is, and who it is there.
func (p *Product) identify(authority *Authority, token string) error {
	for _, process := range p.All() {
		if err := kubeconfig(p.kubeconfig(process), process.Proxy.URL(), authority.PEM, token); err != nil {
			return err
		}
	}
	return nil
}

func (p *Product) kubeconfig(process *Process) string {
	return filepath.Join(p.dir, process.Name+".kubeconfig")
}

// All are the processes, webhooks first.
func (p *Product) All() []*Process { return slices.Concat(p.Webhooks, p.Controllers) }

// Args are the arguments with which a process is started now.
func (p *Product) Args(process *Process) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	common := []string{
		"--kubeconfig=" + p.kubeconfig(process), "--metrics-address=127.0.0.1:0", "--log-format=json", "-v=2",
		"--tls-cert-file=" + p.CertificateFile(), "--tls-key-file=" + p.KeyFile(),
	}
	if slices.Contains(p.Webhooks, process) {
		// No Service has to learn that a replica leaves.
		return slices.Concat([]string{"webhook"}, common, []string{
			"--address=127.0.0.1:0", "--shutdown-linger=0s", "--freshness-timeout=" + p.freshness.String(),
		}, p.options.Webhook)
	}
	// Without nodes no rollout ever ends; package rollouts has nodes, and steps. Without a
	// first soak, three workloads are as quick as one.
	return slices.Concat([]string{"controller"}, common, []string{"--settle=" + p.options.Settle.String(), "--step=off", "--first-soak=0s", "--impact-address=127.0.0.1:0", "--impact-kinds=configmaps,secrets"}, p.options.Controller)
}

// Start starts every process that does not run, and waits until all are ready.
func (p *Product) Start(ctx context.Context) error {
	var started []*Process
	for _, process := range p.All() {
		if process.Running() {
			continue
		}
		if err := process.Start(p.Args(process)); err != nil {
			return err
		}
		started = append(started, process)
	}
	for _, process := range started {
		if err := process.WaitReady(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Stop asks every process to end, at once, and waits for them.
func (p *Product) Stop() error {
	return each(p.All(), (*Process).Stop)
}

// Kill ends every process without asking.
func (p *Product) Kill() error { return each(p.All(), (*Process).Kill) }

// ForgetLeader has the lease taken by whoever asks first: nobody may otherwise
// have that of a leader who was killed for another 15 s.
func (r *Run) ForgetLeader(ctx context.Context) error {
	err := r.Client.CoordinationV1().Leases(OwnNamespace).Delete(ctx, "configstamp-controller", metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("taking the lease away: %w", err)
	}
	return nil
}

func each(processes []*Process, do func(*Process) error) error {
	errs := make([]error, len(processes))
	var doing sync.WaitGroup
	for i, process := range processes {
		doing.Go(func() { errs[i] = do(process) })
	}
	doing.Wait()
	return errors.Join(errs...)
}

// Set has processes started with these options from now on.
func (p *Product) Set(options Options) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.options = options
}

// Restart stops what runs and starts everything with options.
func (p *Product) Restart(ctx context.Context, options Options) error {
	if err := p.Stop(); err != nil {
		return err
	}
	p.Set(options)
	return p.Start(ctx)
}

// Leader is the controller that works, nil when none does.
func (p *Product) Leader() *Process {
	for _, controller := range p.Controllers {
		if values, err := controller.Metrics(); err == nil && values["configstamp_leader"] == 1 {
			return controller
		}
	}
	return nil
}

// Sum adds up a metric of some processes, for all label values that contain each of parts.
func Sum(processes []*Process, metric string, parts ...string) (sum float64) {
	for _, process := range processes {
		values, _ := process.Metrics() // none of one that is not there
		sum += SumOf(values, metric, parts...)
	}
	return sum
}

// usual brings the product back to what every test finds.
func (p *Product) usual(ctx context.Context) error {
	p.Balancer.Release()
	p.Impact.Release()
	complete := true
	for _, process := range p.All() {
		process.Thaw()
		process.Proxy.Clear()
		process.Proxy.Observe(nil)
		complete = complete && process.Running()
	}
	p.mu.Lock()
	same := p.options.equal(p.everyday)
	p.mu.Unlock()
	if same && complete {
		return nil
	}
	if same {
		return p.Start(ctx)
	}
	return p.Restart(ctx, p.everyday)
}

// Logs is the end of each process's log, for failures: the last lines that hold
// one of parts.
func (p *Product) Logs(lines int, parts ...string) string {
	var text strings.Builder
	for _, process := range p.All() {
		var found []string
		for line := range strings.Lines(process.Log()) {
			if slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(line, part) }) {
				found = append(found, line)
			}
		}
		fmt.Fprintf(&text, "--- %s\n%s", process.Name, strings.Join(found[max(0, len(found)-lines):], ""))
	}
	return text.String()
}

func (p *Product) settle() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.options.Settle
}

// logGoroutines says how many goroutines each process has at the end of a run, for who
// looks for a leak: a number that is right on a busy machine, nobody knows.
func (p *Product) logGoroutines() {
	for _, process := range p.All() {
		if values, err := process.Metrics(); err == nil {
			fmt.Fprintf(os.Stderr, "e2e: %s has %v goroutines at the end\n", process.Name, values["go_goroutines"])
		}
	}
}

// Problems are races, panics and unclean ends of any process so far.
func (p *Product) Problems() []string {
	var problems []string
	for _, process := range p.All() {
		problems = append(problems, process.Problems()...)
	}
	return problems
}
