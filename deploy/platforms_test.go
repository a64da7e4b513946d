package deploy

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// otherPorts are values that change every port.
var otherPorts = []string{
	"webhook.port=20001", "webhook.metricsPort=20002", "webhook.healthPort=20003", "controller.metricsPort=20004", "controller.healthPort=20005", "impact.port=20006",
}

// Whoever asks for a port gets it everywhere: the process listens on it, the
// Service and the probes lead to it, the NetworkPolicy lets it through.
func TestEverythingFollowsThePorts(t *testing.T) {
	t.Parallel()
	for exposure, health := range map[string][2]int32{"plain": {20002, 20004}, "tls": {20003, 20005}, "loopback": {20003, 20005}} {
		t.Run(exposure, func(t *testing.T) {
			values := append(slices.Clone(otherPorts), "networkPolicy.enabled=true", "metrics.exposure="+exposure)
			objects := rendered(t, values...)
			containers := only[*appsv1.Deployment](t, objects).Spec.Template.Spec.Containers
			webhook, controller := &containers[0], &containers[1]
			service := only[*corev1.Service](t, objects).Spec.Ports
			for what, leads := range map[string]struct{ got, want int32 }{
				"the Service":                {portOf(webhook, service[0].TargetPort), 20001},
				"the Service, for warnings":  {portOf(controller, service[1].TargetPort), 20006},
				"what the controller serves": {listens(controller, "--impact-address"), 20006},
				"the webhook's readiness":    {portOf(webhook, webhook.ReadinessProbe.HTTPGet.Port), health[0]},
				"the webhook's liveness":     {portOf(webhook, webhook.LivenessProbe.HTTPGet.Port), health[0]},
				"the controller's liveness":  {portOf(controller, controller.LivenessProbe.HTTPGet.Port), health[1]},
				"what the webhook serves at": {listens(webhook, "--address"), 20001},
				"the webhook's metrics":      {listens(webhook, "--metrics-address"), 20002},
				"the controller's metrics":   {listens(controller, "--metrics-address"), 20004},
			} {
				if leads.got != leads.want {
					t.Errorf("%s: port %d, want %d", what, leads.got, leads.want)
				}
			}
			if exposure != "plain" && (listens(webhook, "--health-address") != health[0] || listens(controller, "--health-address") != health[1]) {
				t.Errorf("probes are served elsewhere: %q, %q", webhook.Args, controller.Args)
			}
			want := map[string][]int32{"plain": {20001, 20002, 20004, 20006}, "tls": {20001, 20002, 20003, 20004, 20005, 20006}, "loopback": {20001, 20003, 20005, 20006}}[exposure]
			if got := open(only[*networkingv1.NetworkPolicy](t, objects)); !slices.Equal(got, want) {
				t.Errorf("the NetworkPolicy opens %d, want %d", got, want)
			}
		})
	}
	metrics := all[*corev1.Service](rendered(t, append(slices.Clone(otherPorts), "metrics.serviceMonitor.enabled=true")...))[0]
	for i, want := range []int32{20002, 20004} {
		if port := metrics.Spec.Ports[i]; port.Port != want {
			t.Errorf("the Service of metrics, %s: port %d, want %d", port.Name, port.Port, want)
		}
	}
}

// portOf is the number of a port of a container.
func portOf(container *corev1.Container, port intstr.IntOrString) int32 {
	for _, own := range container.Ports {
		if own.Name == port.StrVal {
			return own.ContainerPort
		}
	}
	return port.IntVal
}

// listens is the port that a flag of a container gives.
func listens(container *corev1.Container, flag string) int32 {
	for _, arg := range container.Args {
		if address, is := strings.CutPrefix(arg, flag+"="); is {
			return intstr.Parse(address[strings.LastIndex(address, ":")+1:]).IntVal
		}
	}
	return 0
}

// open are the ports that a policy lets through.
func open(policy *networkingv1.NetworkPolicy) (ports []int32) {
	for _, rule := range policy.Spec.Ingress {
		for _, port := range rule.Ports {
			ports = append(ports, port.Port.IntVal)
		}
	}
	slices.Sort(ports)
	return ports
}

// Two Pods cannot have the same ports of one node: a rolling update that wants the
// new one first would wait for ever where every node has one.
func TestHostNetwork(t *testing.T) {
	t.Parallel()
	objects := rendered(t, "hostNetwork=true", "namespace.create=true")
	deployment := only[*appsv1.Deployment](t, objects).Spec
	if pod := deployment.Template.Spec; !pod.HostNetwork || pod.DNSPolicy != corev1.DNSClusterFirstWithHostNet {
		t.Errorf("hostNetwork: %t, dnsPolicy: %s", pod.HostNetwork, pod.DNSPolicy)
	}
	if update := deployment.Strategy.RollingUpdate; update.MaxSurge.IntVal != 0 || update.MaxUnavailable.IntVal != 1 {
		t.Errorf("the rolling update: %v", update)
	}
	if level := only[*corev1.Namespace](t, objects).Labels["pod-security.kubernetes.io/enforce"]; level != "privileged" {
		t.Errorf("Pod Security is %q, which refuses such Pods", level)
	}

	objects = rendered(t, "namespace.create=true")
	deployment = only[*appsv1.Deployment](t, objects).Spec
	if pod := deployment.Template.Spec; pod.HostNetwork || pod.DNSPolicy != "" {
		t.Errorf("not asked for: hostNetwork: %t, dnsPolicy: %s", pod.HostNetwork, pod.DNSPolicy)
	}
	if update := deployment.Strategy.RollingUpdate; update.MaxSurge.IntVal != 1 || update.MaxUnavailable.IntVal != 0 {
		t.Errorf("the usual rolling update: %v", update)
	}
	if level := only[*corev1.Namespace](t, objects).Labels["pod-security.kubernetes.io/enforce"]; level != "restricted" {
		t.Errorf("Pod Security is %q", level)
	}

	deployment = only[*appsv1.Deployment](t, rendered(t, "hostNetwork=true", "dnsPolicy=Default", "dnsConfig.nameservers={192.0.2.1}", "updateStrategy.type=Recreate")).Spec
	if pod := deployment.Template.Spec; pod.DNSPolicy != corev1.DNSDefault || pod.DNSConfig.Nameservers[0] != "192.0.2.1" || deployment.Strategy.Type != appsv1.RecreateDeploymentStrategyType {
		t.Errorf("what was asked for is not there: %s, %v, %v", pod.DNSPolicy, pod.DNSConfig, deployment.Strategy)
	}
}

func TestTheWebhookConfigurationsHaveAnnotationsAndLabels(t *testing.T) {
	t.Parallel()
	const enforcer, injected = "admissions.enforcer/disabled", "cert-manager.io/inject-ca-from"
	for mode, want := range map[string]int{"cert-manager": 2, "self-managed": 1} {
		objects := rendered(t, "certificates.mode="+mode, "--set-string=webhook.annotations.admissions\\.enforcer/disabled=true", "webhook.labels.team=platform")
		for _, configuration := range []metav1.Object{
			only[*admissionregistrationv1.MutatingWebhookConfiguration](t, objects), only[*admissionregistrationv1.ValidatingWebhookConfiguration](t, objects),
		} {
			annotations, labels := configuration.GetAnnotations(), configuration.GetLabels()
			trusted := annotations[injected] == "configstamp/configstamp"
			if annotations[enforcer] != "true" || len(annotations) != want || trusted != (mode == "cert-manager") {
				t.Errorf("%s: annotations of %T: %v", mode, configuration, annotations)
			}
			if labels["team"] != "platform" || labels["app.kubernetes.io/name"] != "configstamp" {
				t.Errorf("%s: labels of %T: %v", mode, configuration, labels)
			}
		}
	}
}

// OpenShift's restricted-v2 gives each namespace users and fsGroups of its own, and
// refuses a Pod that names others. It does not look at runAsGroup, which is root's
// where nobody names it, whatever the image says: e2e/pods asks the kernel.
func TestNoUserIsNamed(t *testing.T) {
	t.Parallel()
	for name, values := range variants {
		t.Run(name, func(t *testing.T) {
			objects := rendered(t, values...)
			spec := only[*appsv1.Deployment](t, objects).Spec.Template.Spec
			if may := spec.SecurityContext; may.RunAsUser != nil || may.FSGroup != nil || may.SupplementalGroups != nil || may.SELinuxOptions != nil {
				t.Errorf("of Pods: %v", may)
			}
			if spec.SecurityContext.RunAsGroup != nil {
				t.Error("a group is named for the Pod, and no user: containerd makes no sandbox for that")
			}
			for _, container := range spec.Containers {
				if may := container.SecurityContext; may.RunAsUser != nil || may.RunAsGroup == nil || *may.RunAsGroup == 0 || may.SELinuxOptions != nil {
					t.Errorf("of container %s: %v", container.Name, may)
				}
			}
			for _, volume := range spec.Volumes {
				mode := int32(0)
				if volume.Secret != nil {
					mode = *volume.Secret.DefaultMode
				} else if volume.ConfigMap != nil {
					mode = *volume.ConfigMap.DefaultMode
				}
				if mode&0o004 == 0 {
					t.Errorf("volume %s: want what whatever user can read", volume.Name)
				}
			}
		})
	}
}

// What an organisation asks of everything that runs in its cluster.
func TestCommonLabelsTolerationsAndEnvironment(t *testing.T) {
	t.Parallel()
	objects := rendered(t, append(slices.Clone(everything), "commonLabels.cost-center=42a", "extraEnv[0].name=KUBERNETES_SERVICE_HOST", "extraEnv[0].value=api.example.com",
		"tolerations[0].operator=Exists", "nodeSelector.pool=system")...)
	for _, object := range objects {
		accessor, err := meta.Accessor(object)
		if err != nil {
			t.Fatal(err)
		}
		if accessor.GetLabels()["cost-center"] != "42a" {
			t.Errorf("%T %s lacks the label", object, accessor.GetName())
		}
	}
	deployment := only[*appsv1.Deployment](t, objects).Spec
	if deployment.Template.Labels["cost-center"] != "42a" || len(deployment.Selector.MatchLabels) != 2 {
		t.Errorf("labels of Pods: %v, selected by %v", deployment.Template.Labels, deployment.Selector.MatchLabels)
	}
	for _, container := range deployment.Template.Spec.Containers {
		if !slices.ContainsFunc(container.Env, func(v corev1.EnvVar) bool { return v.Name == "KUBERNETES_SERVICE_HOST" && v.Value == "api.example.com" }) {
			t.Errorf("%s: %v", container.Name, container.Env)
		}
	}
	spec := deployment.Template.Spec
	if len(spec.Tolerations) != 1 || spec.NodeSelector["pool"] != "system" {
		t.Errorf("tolerations %v, nodeSelector %v", spec.Tolerations, spec.NodeSelector)
	}
}

// Each file of values renders.
func TestPlatforms(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("platforms/*.yaml")
	if err != nil || len(files) != 5 {
		t.Fatalf("%v: %v", files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) { rendered(t, "--values="+file) })
	}
}
