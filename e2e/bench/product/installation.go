package product

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/configstamp/configstamp/e2e/bench/lab"
	"github.com/configstamp/configstamp/e2e/harness"
	"github.com/configstamp/configstamp/e2e/proxy"
)

// Installation is a product in a cluster. Stop ends its processes; it can be
// started again, with other options.
type Installation struct {
	Given
	// Counter counts what the processes ask of the API server; it stays at 0
	// unless they were started with Options.Counted.
	Counter *Counter

	lab         *lab.Lab
	token       string
	webhookPort int
	impactPort  int
	running     []*running
	starts      int
}

// running is one process and what stands before it.
type running struct {
	role    Role
	place   Place
	process *lab.Process
	front   *proxy.Proxy  // nil: none
	ready   time.Duration // since it began; 0: not yet
}

// Install puts a product into a cluster; nothing runs yet.
func Install(ctx context.Context, l *lab.Lab, given Given) (*Installation, error) {
	i := &Installation{Given: given, Counter: &Counter{}, lab: l}
	var err error
	if i.webhookPort, err = freePort(); err != nil {
		return nil, err
	}
	if i.impactPort, err = freePort(); err != nil {
		return nil, err
	}
	certificate, key, err := l.Authority.Pair(time.Now().Add(24 * time.Hour))
	if err != nil {
		return nil, err
	}
	err = errors.Join(os.WriteFile(l.File("tls.crt"), certificate, 0o600), os.WriteFile(l.File("tls.key"), key, 0o600))
	if err != nil {
		return nil, fmt.Errorf("writing the serving certificate: %w", err)
	}
	urls := harness.URLs{Stamps: "https://" + local(i.webhookPort) + "/", Warns: "https://" + local(i.impactPort) + "/"}
	if i.token, err = given.Adapter.Install(ctx, l, urls); err != nil {
		return nil, fmt.Errorf("installing %s: %w", given.Adapter.Name, err)
	}
	return i, nil
}

// Namespace makes a namespace whose workloads the product cares for.
func (i *Installation) Namespace(ctx context.Context, name string) error {
	return i.lab.Namespace(ctx, name, i.Adapter.NamespaceLabels)
}

// Workload makes a workload one that the product cares for.
func (i *Installation) Workload(w lab.Workload) lab.Workload {
	w.Annotations = i.Adapter.Annotations
	return w
}

// Start starts every process, waits until each is ready and the product works.
func (i *Installation) Start(ctx context.Context, o Options) error {
	i.starts++
	for _, role := range i.Adapter.Roles(o) {
		if err := i.start(role, o); err != nil {
			return errors.Join(err, i.Stop())
		}
	}
	if err := i.Work(ctx); err != nil {
		return errors.Join(err, i.Stop())
	}
	return nil
}

func (i *Installation) start(role Role, o Options) (err error) {
	name := fmt.Sprintf("%s-%s-%d", i.Adapter.Name, role.Name, i.starts)
	r := &running{role: role, place: Place{
		Kubeconfig: i.lab.File(name + ".kubeconfig"), CertFile: i.lab.File("tls.crt"), KeyFile: i.lab.File("tls.key"),
		WebhookPort: i.webhookPort, ImpactPort: i.impactPort, Temporary: i.lab.File(name),
	}}
	if r.place.MetricsPort, err = freePort(); err != nil {
		return err
	}
	if err := os.MkdirAll(r.place.Temporary, 0o700); err != nil {
		return fmt.Errorf("starting %s: %w", name, err)
	}
	server, ca := i.lab.Cluster.Server, i.lab.Config.CAData
	if o.Counted {
		pair, err := i.lab.Authority.TLS()
		if err != nil {
			return err
		}
		if r.front, err = proxy.New(server, ca, pair); err != nil {
			return err
		}
		r.front.Observe(func(request *proxy.Request) { i.Counter.see(role.Name, request) })
		server, ca = r.front.URL(), i.lab.Authority.PEM
	}
	if err := harness.WriteKubeconfig(r.place.Kubeconfig, server, ca, i.token); err != nil {
		return err
	}
	environment := []string{"KUBECONFIG=" + r.place.Kubeconfig}
	if role.Environment != nil {
		environment = append(environment, role.Environment(r.place)...)
	}
	args := append(role.Args(r.place), i.Args...)
	if r.process, err = lab.Start(name, i.lab.File(name+".log"), i.Binary, args, environment); err != nil {
		return err
	}
	i.running = append(i.running, r)
	return nil
}

// Work waits until each process is ready and the product has nothing to do.
func (i *Installation) Work(ctx context.Context) error {
	group, waiting := errgroup.WithContext(ctx)
	for _, r := range i.running {
		if r.role.Ready != "" && r.ready == 0 {
			group.Go(func() error { return r.waitReady(waiting) })
		}
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if i.Adapter.Working != nil {
		return i.Adapter.Working(ctx, i)
	}
	return i.canary(ctx)
}

// waitReady waits until the readiness probe says yes, and notes when.
func (r *running) waitReady(ctx context.Context) error {
	err := lab.Until(ctx, r.process.Name+" to be ready", 10*time.Minute, func(ctx context.Context) error {
		if !r.process.Running() {
			return errors.New("it has ended")
		}
		_, err := get(ctx, "http://"+local(r.place.MetricsPort)+r.role.Ready)
		return err
	})
	if err != nil {
		return fmt.Errorf("%w\n%s", err, r.process.LogTail(10))
	}
	r.ready = time.Since(r.process.Began)
	return nil
}

// Ready is how long after its start each process was ready that can tell.
func (i *Installation) Ready() map[string]time.Duration {
	ready := map[string]time.Duration{}
	for _, r := range i.running {
		if r.ready > 0 {
			ready[r.role.Name] = r.ready
		}
	}
	return ready
}

// Processes are those that run, by the name of their role.
func (i *Installation) Processes() map[string]*lab.Process {
	processes := make(map[string]*lab.Process, len(i.running))
	for _, r := range i.running {
		processes[r.role.Name] = r.process
	}
	return processes
}

// Ended are the processes that have ended by themselves.
func (i *Installation) Ended() (names []string) {
	for _, r := range i.running {
		if !r.process.Running() {
			names = append(names, r.role.Name)
		}
	}
	return names
}

// Metrics are the values of a process's /metrics, as they are printed there.
func (i *Installation) Metrics(ctx context.Context, role string) (map[string]float64, error) {
	r, err := i.find(role)
	if err != nil {
		return nil, err
	}
	text, err := get(ctx, "http://"+local(r.place.MetricsPort)+"/metrics")
	if err != nil {
		return nil, err
	}
	return harness.ParseMetrics(text), nil
}

// Stop stops every process, whatever state it is in.
func (i *Installation) Stop() error {
	var errs []error
	for _, r := range i.running {
		errs = append(errs, r.process.Stop())
		if r.front != nil {
			_ = r.front.Close()
		}
	}
	i.running = nil
	return errors.Join(errs...)
}

func (i *Installation) find(role string) (*running, error) {
	for _, r := range i.running {
		if r.role.Name == role {
			return r, nil
		}
	}
	return nil, fmt.Errorf("%s has no process %q that runs", i.Adapter.Name, role)
}

// canary edits a source of its own until the workload that uses it is changed.
func (i *Installation) canary(ctx context.Context) error {
	namespace := fmt.Sprintf("canary-%d", i.starts)
	if err := i.Namespace(ctx, namespace); err != nil {
		return err
	}
	if err := i.lab.ConfigMap(ctx, namespace, "canary", "0"); err != nil {
		return err
	}
	workload := lab.Workload{Namespace: namespace, Name: "canary", Sources: []string{"configmap/canary"}}
	if err := i.lab.Create(ctx, i.Workload(workload)); err != nil {
		return err
	}
	templates, err := i.lab.Templates(ctx, namespace)
	if err != nil {
		return err
	}
	defer templates.Stop()
	edits := 0
	return lab.Until(ctx, i.Adapter.Name+" to roll a canary", 10*time.Minute, func(ctx context.Context) error {
		before := templates.Changes()
		edits++
		if err := i.lab.Edit(ctx, namespace, "canary", strconv.Itoa(edits)); err != nil {
			return err
		}
		_, err := templates.Wait(ctx, before, 1, time.Second)
		return err
	})
}

func get(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", fmt.Errorf("GET %s: %w", url, err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %s: %s", url, response.Status, strings.TrimSpace(string(body)))
	}
	return string(body), err
}

func local(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// freePort finds a port that nobody listens on at this moment.
func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("looking for a free port: %w", err)
	}
	address, ok := listener.Addr().(*net.TCPAddr)
	if !ok {
		return 0, errors.Join(errors.New("looking for a free port: it is no TCP port"), listener.Close())
	}
	return address.Port, listener.Close()
}
