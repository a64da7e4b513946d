package servers

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/configstamp/configstamp/e2e/faults"
	"github.com/configstamp/configstamp/e2e/harness"
)

// settle is the --settle of the product: small, so that much rolls.
const settle = 500 * time.Millisecond

// timeout is the timeoutSeconds of the chart's webhooks.
const timeout = 3 * time.Second

// server is one of the API servers.
type server int

const (
	first server = iota // is never disturbed
	second
	third
	count
)

// component is its name in the cluster.
func (s server) component() string {
	if s == first {
		return "kube-apiserver"
	}
	return fmt.Sprintf("kube-apiserver-%d", s+1)
}

// alone has the product for itself, and a namespace whose user reaches the API servers
// through a balancer of his own, too. At the end nothing is disturbed any more.
func alone(t *testing.T) (*harness.Product, *person) {
	t.Helper()
	product := court.Run.Exclusive(t)
	t.Cleanup(func() {
		calm(t)
		harness.Must(t, court.Calm(context.Background()))
	})
	return product, newPerson(t)
}

// calm undoes whatever befell the servers.
func calm(t testing.TB) {
	t.Helper()
	for s := second; s < count; s++ {
		before[s].Lag(0)
		s.thaw(t)
	}
	for _, process := range court.Run.Product.All() {
		process.Front.Release()
	}
}

// only has processes reach one server alone.
func only(s server, processes ...*harness.Process) {
	for _, process := range processes {
		process.Front.Only(int(s))
	}
}

// freeze has a server answer nobody, with all its connections open.
func (s server) freeze(t testing.TB) {
	t.Helper()
	_, err := court.Run.Driver(context.Background(), "freeze", s.component())
	harness.Must(t, err)
}

func (s server) thaw(t testing.TB) {
	t.Helper()
	_, err := court.Run.Driver(context.Background(), "thaw", s.component())
	harness.Must(t, err)
}

// restart kills a server, and starts it again.
func (s server) restart(t testing.TB) {
	t.Helper()
	harness.Must(t, court.Run.RestartCluster(context.Background(), s.component()))
}

// client reaches one server, with nothing between.
func (s server) client(t testing.TB) kubernetes.Interface {
	t.Helper()
	config := rest.CopyConfig(court.Run.Config)
	config.Host = court.Run.Servers()[s]
	client, err := kubernetes.NewForConfig(config)
	harness.Must(t, err)
	return client
}

// remembers is what a server's watch cache holds of a ConfigMap's key k; etcd may hold
// something newer.
func (s server) remembers(t testing.TB, namespace, name string) string {
	t.Helper()
	held, err := s.client(t).CoreV1().ConfigMaps(namespace).Get(t.Context(), name, metav1.GetOptions{ResourceVersion: "0"})
	harness.Must(t, err)
	return held.Data["k"]
}

// unanswered is how many calls of configstamp's webhooks a server gave up since it was
// started: it admitted without them. A server that answers nobody is not asked.
func (s server) unanswered(t testing.TB) float64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	text, err := s.client(t).Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	harness.Must(t, err)
	sum := 0.0
	for line := range strings.Lines(string(text)) {
		for _, counter := range []string{"apiserver_admission_webhook_fail_open_count{", "apiserver_admission_webhook_rejection_count{"} {
			if strings.HasPrefix(line, counter) && strings.Contains(line, "configstamp") {
				var n float64
				_, value, _ := strings.Cut(strings.TrimSpace(line), "} ")
				_, err := fmt.Sscan(value, &n)
				harness.Must(t, err)
				sum += n
			}
		}
	}
	return sum
}

// fanOut makes ConfigMap c and workloads of every kind that use it.
func fanOut(t *testing.T, p *person, workloads int) (names []string) {
	t.Helper()
	harness.Must(t, p.Set("configmap/c", value(0)))
	kinds := []string{"Deployment", "StatefulSet", "DaemonSet", "CronJob"}
	for i := range workloads {
		object := faults.Workload(kinds[i%len(kinds)], fmt.Sprintf("w%d", i), "1", faults.Reads("configmap/c")...)
		harness.Must(t, p.Create(object))
		names = append(names, strings.ToLower(object.GetKind())+"/"+object.GetName())
	}
	untrue, err := p.Converge(t.Context(), time.Minute)
	harness.Must(t, err)
	if len(untrue) > 0 {
		t.Fatalf("%v\n%s", untrue, p.Report())
	}
	return names
}
