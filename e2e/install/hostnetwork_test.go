package install

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/configstamp/configstamp/e2e/harness"
)

// As where the API server reaches nodes and no Pods: in the node's own network, with
// the values of deploy/platforms/eks.yaml. And as a user without a name, such as
// OpenShift gives to a Pod.
func TestHelm_HostNetwork(t *testing.T) {
	values := []string{"--values=deploy/platforms/eks.yaml", "--set=replicas=1", "--set=podSecurityContext.runAsUser=1000680000", "--set=podSecurityContext.fsGroup=1000680000"}
	s := openShop(t)
	own := cluster.Existing(t, harness.OwnNamespace)
	cluster.Kubectl(t, "create", "namespace", harness.OwnNamespace)
	cluster.Kubectl(t, "label", "namespace", harness.OwnNamespace, "pod-security.kubernetes.io/enforce=baseline")
	s.still("helm install", func() {
		helm(t, append([]string{"install", "configstamp", "deploy/chart"}, values...)...)
	})
	own.Eventually("waiting until Pod Security refuses the Pods", func() error {
		refused := cluster.Own(t, "get", "replicasets", "-o", `jsonpath={.items[*].status.conditions[?(@.type=="ReplicaFailure")].message}`)
		if !strings.Contains(refused, `violates PodSecurity "baseline:latest": host namespaces (hostNetwork=true)`) {
			return fmt.Errorf("it says %q", refused)
		}
		return nil
	})
	cluster.Kubectl(t, "label", "--overwrite", "namespace", harness.OwnNamespace, "pod-security.kubernetes.io/enforce=privileged")
	cluster.Own(t, "rollout", "restart", "deployment/configstamp") // or it is tried again minutes later
	cluster.WaitServing(t)
	if at := cluster.Own(t, "get", "pods", "-o", "jsonpath={.items[0].status.podIP}:{.items[0].status.hostIP}"); strings.SplitN(at, ":", 2)[0] != strings.SplitN(at, ":", 2)[1] {
		t.Errorf("the Pod's address and the node's: %s", at)
	}
	s.Label("enabled")
	s.EventuallyRecorded()
	s.told("1")

	s.still("a rolling update where the one node has no room for a second Pod", func() {
		helm(t, append([]string{"upgrade", "configstamp", "deploy/chart", "--set=log.verbosity=1", "--wait", "--timeout=3m"}, values...)...)
		cluster.WaitServing(t)
	})
	s.rolls("2")
	cluster.Own(t, "scale", "deployment/configstamp", "--replicas=2")
	own.Eventually("waiting until the second Pod finds no node", func() error {
		said := cluster.Own(t, "get", "pods", "-o", `jsonpath={.items[*].status.conditions[?(@.reason=="Unschedulable")].message}`)
		if !strings.Contains(said, "didn't have free ports for the requested pod ports") {
			return fmt.Errorf("it says %q", said)
		}
		return nil
	})
	s.still("helm uninstall", func() { uninstall(t) })
}

// Where the API server does not reach the webhook, kubectl says nothing, and
// deploy/reached.sh says why.
func TestUnreachedIsSilentUntilAsked(t *testing.T) {
	s := openShop(t)
	install(t, "--set=certificates.mode=self-managed")
	cluster.WaitServing(t)
	s.Label("enabled")
	s.EventuallyRecorded()
	if said, err := reached(t, s.Namespace); err != nil || strings.Count(said, "reached: ") != 2 {
		t.Errorf("the webhook and the controllers answer, and reached.sh says: %v\n%s", err, said)
	}
	const missing = `{"spec":{"template":{"spec":{"containers":[{"name":"app","envFrom":[{"secretRef":{"name":"missing"}}]}]}}}}`
	dry := func() harness.Result { return s.Kubectl("patch", "deployment/web", "--dry-run=server", "-p", missing) }
	if len(dry().Warnings()) == 0 {
		t.Error("the webhook answers, and does not warn of a missing Secret: silence tells nothing then")
	}

	cluster.Own(t, "patch", "service", "configstamp", "--patch", `{"spec":{"ports":[{"name":"impact","port":444,"targetPort":9}]}}`)
	cluster.Own(t, "rollout", "restart", "deployment/configstamp") // or connections that are open go on
	cluster.Own(t, "rollout", "status", "deployment/configstamp", "--timeout=5m")
	s.Eventually("waiting until the controllers are not reached", func() error {
		said, err := reached(t, s.Namespace)
		if err == nil || !strings.Contains(said, `failed calling webhook "reached.configstamp.dev": failed to call webhook: Post "https://configstamp.configstamp.svc:444/impact?timeout=1s"`) {
			return fmt.Errorf("reached.sh says: %w\n%s", err, said)
		}
		return nil
	})

	cluster.Own(t, "patch", "service", "configstamp", "--patch", `{"spec":{"ports":[{"name":"https","port":443,"targetPort":9}]}}`)
	cluster.Own(t, "rollout", "restart", "deployment/configstamp") // or connections that are open go on
	cluster.Own(t, "rollout", "status", "deployment/configstamp", "--timeout=5m")
	s.Eventually("waiting until the webhook is not reached", func() error {
		if warnings := dry().Warnings(); len(warnings) > 0 {
			return fmt.Errorf("it answers: %q", warnings)
		}
		return nil
	})
	said, err := reached(t, s.Namespace)
	t.Log(said)
	if err == nil || !strings.Contains(said, `failed calling webhook "reached.configstamp.dev": failed to call webhook: Post "https://configstamp.configstamp.svc:443/?timeout=3s"`) {
		t.Errorf("the webhook is not reached, and reached.sh says: %v\n%s", err, said)
	}
	if left := cluster.Kubectl(t, "get", "mutatingwebhookconfigurations,validatingwebhookconfigurations", "-o", "name"); strings.Contains(left, "reached") {
		t.Errorf("it leaves %s", left)
	}
	s.still("helm uninstall", func() { uninstall(t) })
}

// reached runs deploy/reached.sh, and returns what it says.
func reached(t *testing.T, namespace string) (string, error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), path(t, "deploy/reached.sh"), namespace)
	command.Env = append(os.Environ(), "KUBECONFIG="+cluster.Kubeconfig(), "PATH="+cluster.Programs()+string(os.PathListSeparator)+os.Getenv("PATH"))
	out, err := command.CombinedOutput()
	return string(out), err
}
