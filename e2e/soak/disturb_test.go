package soak

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configstamp/configstamp/e2e/harness"
)

// leaving is how long a Pod takes to end: its linger, and a little.
const leaving = 13 * time.Second

func roll(t *testing.T, _ *crowd, _ int) {
	cluster.Own(t, "rollout", "restart", "deployment/configstamp")
	cluster.Own(t, "rollout", "status", "deployment/configstamp", "--timeout=5m")
}

// ready are the Pods that are Ready and stay.
func ready(t *testing.T) []corev1.Pod {
	t.Helper()
	list, err := cluster.Client.CoreV1().Pods(harness.OwnNamespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=configstamp"})
	harness.Must(t, err)
	var found []corev1.Pod
	for _, pod := range list.Items {
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue && pod.DeletionTimestamp == nil {
				found = append(found, pod)
			}
		}
	}
	return found
}

// replicas are what the Deployment has.
const replicas = 2

// whole waits until both replicas are Ready.
func whole(t *testing.T) []corev1.Pod {
	t.Helper()
	var found []corev1.Pod
	eventually(t, "waiting for both replicas", func() error {
		if found = ready(t); len(found) != replicas {
			return fmt.Errorf("%d are Ready", len(found))
		}
		return nil
	})
	return found
}

func eventually(t *testing.T, what string, ok func() error) {
	t.Helper()
	cluster.Existing(t, harness.OwnNamespace).EventuallyIn(2*time.Minute, what, ok)
}

// evict has both Pods evicted, as a drain of all nodes at once would. The budget
// has to refuse the second until the first is replaced.
func evict(t *testing.T, _ *crowd, _ int) {
	const attempts = 5
	for range attempts {
		refused, slow := evictAll(t, whole(t))
		whole(t)
		if refused == 0 && slow {
			continue // the first may have been replaced before the second was asked for
		}
		if refused == 0 {
			t.Error("both Pods were evicted at once: the PodDisruptionBudget refused nothing")
		}
		return
	}
	t.Errorf("%d times the second Pod was asked for long after the first: this machine is too busy to tell", attempts)
}

// evictAll evicts Pods, each as soon as it is allowed to; it returns how often it was
// not, and whether any was asked for so long after the last that this may be replaced.
func evictAll(t *testing.T, pods []corev1.Pod) (refused int, slow bool) {
	t.Helper()
	var last time.Time
	for _, pod := range pods {
		asked := false
		eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace}}
		eventually(t, "evicting "+pod.Name, func() error {
			err := cluster.Client.PolicyV1().Evictions(pod.Namespace).Evict(t.Context(), eviction)
			slow = slow || !asked && !last.IsZero() && time.Since(last) > time.Second
			asked = true
			if apierrors.IsTooManyRequests(err) {
				refused++
			}
			if apierrors.IsNotFound(err) {
				return nil // a rolling update was quicker
			}
			return err
		})
		last = time.Now()
	}
	return refused, slow
}

func deleteByForce(t *testing.T, _ *crowd, _ int) {
	gone := whole(t)[0]
	cluster.Own(t, "delete", "pod", gone.Name, "--grace-period=0", "--force")
	whole(t)
}

// killWebhook has the process die that other admissions are in the hands of.
func killWebhook(t *testing.T, c *crowd, turn int) {
	if turn > 0 && turn%replicas == 0 {
		roll(t, c, turn) // a kubelet has what dies again wait, longer each time
	}
	pods := whole(t)
	c.kill(func() { kill(t, pods[turn%len(pods)], "webhook") })
}

// together does at once what was done in turn.
func together(t *testing.T, _ *crowd, _ int) {
	cluster.Own(t, "rollout", "restart", "deployment/configstamp")
	before := stored(t, "configstamp-tls")
	renew(t, "configstamp")
	evictAll(t, ready(t))
	made := waitNew(t, "configstamp-tls", before)
	cluster.Own(t, "rollout", "status", "deployment/configstamp", "--timeout=5m")
	waitServed(t, made)
}

func killLeader(t *testing.T, _ *crowd, _ int) {
	holder := func() string {
		lease, err := cluster.Client.CoordinationV1().Leases(harness.OwnNamespace).Get(t.Context(), "configstamp-controller", metav1.GetOptions{})
		harness.Must(t, err)
		if lease.Spec.HolderIdentity == nil {
			return ""
		}
		return *lease.Spec.HolderIdentity
	}
	pods, leader := whole(t), ""
	var victim corev1.Pod
	eventually(t, "waiting for a leader", func() error { // a Pod that was deleted by force keeps its lease for a while
		leader = holder()
		for _, pod := range pods {
			if strings.HasPrefix(leader, pod.Name+"_") {
				victim = pod
				return nil
			}
		}
		return fmt.Errorf("the leader %q is none of the Pods", leader)
	})
	kill(t, victim, "controller")
	eventually(t, "waiting for another leader", func() error {
		if now := holder(); now == "" || now == leader {
			return errors.New("it is still " + leader)
		}
		return nil
	})
}

// kill ends a container's process without asking, as the kernel does when memory
// is short, and waits until the kubelet has started it anew.
func kill(t *testing.T, pod corev1.Pod, container string) {
	t.Helper()
	before := status(t, pod.Name, container)
	pid, err := processOf(before.ContainerID)
	harness.Must(t, err)
	harness.Must(t, syscall.Kill(pid, syscall.SIGKILL))
	eventually(t, "waiting for "+container+" of "+pod.Name+" to run again", func() error {
		if now := status(t, pod.Name, container); now.RestartCount == before.RestartCount || !now.Ready {
			return fmt.Errorf("it has restarted %d times, and is ready: %t", now.RestartCount, now.Ready)
		}
		return nil
	})
	whole(t)
}

func status(t *testing.T, pod, container string) corev1.ContainerStatus {
	t.Helper()
	found, err := cluster.Client.CoreV1().Pods(harness.OwnNamespace).Get(t.Context(), pod, metav1.GetOptions{})
	harness.Must(t, err)
	for _, status := range found.Status.ContainerStatuses {
		if status.Name == container {
			return status
		}
	}
	t.Fatalf("%s has no container %s", pod, container)
	return corev1.ContainerStatus{}
}

// processOf finds a container's process on this machine, by its cgroup.
func processOf(containerID string) (int, error) {
	_, id, found := strings.Cut(containerID, "://")
	if !found || id == "" {
		return 0, fmt.Errorf("finding the process of container %q: it has no id", containerID)
	}
	files, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		return 0, fmt.Errorf("finding the process of container %s: %w", id, err)
	}
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil && strings.Contains(string(text), id) {
			return strconv.Atoi(filepath.Base(filepath.Dir(file)))
		}
	}
	return 0, fmt.Errorf("finding the process of container %s: none has its cgroup", id)
}

// rotate has cert-manager make a new certificate, for one of four reasons, and
// waits until both replicas serve it.
func rotate(t *testing.T, _ *crowd, turn int) {
	const certificate, authority = "configstamp", "configstamp-ca"
	before, old := stored(t, "configstamp-tls"), stored(t, "configstamp-ca")
	switch turn % 4 {
	case 0: // its authority gets another key: old and new have to be trusted at once
		cluster.Own(t, "delete", "secret", "configstamp-ca")
		waitNew(t, "configstamp-ca", old)
		renew(t, certificate)
	case 1: // somebody deletes the Secret
		cluster.Own(t, "delete", "secret", "configstamp-tls")
	case 2: // it is due
		renew(t, certificate)
	case 3: // the authority's own certificate is due, too
		renew(t, authority)
		waitNew(t, "configstamp-ca", old)
		renew(t, certificate)
	}
	waitServed(t, waitNew(t, "configstamp-tls", before))
}

// waitServed waits until both replicas serve a certificate.
func waitServed(t *testing.T, made string) {
	t.Helper()
	for _, pod := range whole(t) {
		eventually(t, "waiting for "+pod.Name+" to serve the new certificate", func() error { return serves(pod, made) })
	}
}

// renew does what cmctl renew does.
func renew(t *testing.T, certificate string) {
	t.Helper()
	cluster.Own(t, "patch", "certificate", certificate, "--subresource=status", "--type=json", fmt.Sprintf(
		`--patch=[{"op":"add","path":"/status/conditions/-","value":{"type":"Issuing","status":"True","reason":"ManuallyTriggered","message":"renewed by hand","lastTransitionTime":%q}}]`,
		time.Now().UTC().Format(time.RFC3339)))
}

// stored is the certificate in a Secret, "" while there is none.
func stored(t *testing.T, secret string) string {
	t.Helper()
	found, err := cluster.Client.CoreV1().Secrets(harness.OwnNamespace).Get(t.Context(), secret, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return ""
	}
	harness.Must(t, err)
	return string(found.Data["tls.crt"])
}

func waitNew(t *testing.T, secret, old string) (made string) {
	t.Helper()
	eventually(t, "waiting for a new certificate in "+secret, func() error {
		if made = stored(t, secret); made == "" || made == old {
			return errors.New("it is not there")
		}
		return nil
	})
	return made
}

// serves looks at the certificate with which a Pod answers.
func serves(pod corev1.Pod, made string) error {
	block, _ := pem.Decode([]byte(made))
	if block == nil {
		return errors.New("the Secret holds no certificate")
	}
	want, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return fmt.Errorf("reading the certificate in the Secret: %w", err)
	}
	dialer := &net.Dialer{Timeout: 2 * time.Second} // whatever is answered is compared below
	connection, err := tls.DialWithDialer(dialer, "tcp", net.JoinHostPort(pod.Status.PodIP, "8443"), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		return fmt.Errorf("asking %s for its certificate: %w", pod.Name, err)
	}
	defer connection.Close()
	if got := connection.ConnectionState().PeerCertificates[0]; !got.Equal(want) {
		return fmt.Errorf("it serves serial %x, want %x", got.SerialNumber, want.SerialNumber)
	}
	return nil
}
