package neighbours

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/configstamp/configstamp/e2e/harness"
)

// The times of the product: as in e2e/rollouts.
const (
	settle        = 2 * time.Second
	soak          = 10 * time.Second
	crashDeadline = 8 * time.Second
)

// app is e2e/rollouts/app: "strict" crashes when SETTING contains "bad".
const app = "rollouts-app:1"

var (
	long = flag.Duration("for", 2*time.Minute, "how long each neighbour is watched while people edit")

	// run is the cluster and the product of this test binary.
	run *harness.Run
	// auditLog is the API server's, of all that is asked of it.
	auditLog string
)

// What is watched for ever, and what every client asks for, says nothing of an object.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: None
  resources: [{group: coordination.k8s.io}, {group: events.k8s.io}, {group: "", resources: [events]}]
- {level: None, verbs: [watch]}
- {level: None, nonResourceURLs: ["*"]}
- {level: Metadata}
`

// options are the flags that every test finds.
func options() harness.Options {
	return harness.Options{Settle: settle, Controller: []string{"--step=1", "--soak=" + soak.String(), "--crash-deadline=" + crashDeadline.String()}}
}

func TestMain(m *testing.M) { os.Exit(watched(m)) }

func watched(m *testing.M) int {
	dir, err := os.MkdirTemp("", "configstamp-neighbours-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "neighbours:", err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	policy := filepath.Join(dir, "policy.yaml")
	auditLog = filepath.Join(dir, "audit.log")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		fmt.Fprintln(os.Stderr, "neighbours:", err)
		return 1
	}
	wanted := harness.Wanted{
		Node: harness.Kubelet,
		Up: []string{
			"--apiserver-arg=audit-policy-file=" + policy, "--apiserver-arg=audit-log-path=" + auditLog,
			"--apiserver-arg=audit-log-maxsize=100000", // MB: one file
		},
		Options: options(),
	}
	return wanted.Main(m, func(r *harness.Run) error {
		run = r
		return r.LoadImage(bounded(), "./e2e/rollouts/app", app)
	})
}
