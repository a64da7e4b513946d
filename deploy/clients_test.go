package deploy

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
)

// Where the API server has a client certificate, both processes demand it, by authorities that
// they can read.
func TestClientCertificatesAreDemanded(t *testing.T) {
	t.Parallel()
	demand := []string{"--client-ca-file=/clients/ca.crt", "--client-names=kube-apiserver,front-proxy"}
	for name, values := range map[string][]string{
		"cert-manager": nil, "self-managed": {"certificates.mode=self-managed"}, "no impact warnings": {"impact.configMaps=false"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects := rendered(t, append([]string{"clientCertificates.ca.secret=clients", "clientCertificates.names={kube-apiserver,front-proxy}"}, values...)...)
			pod := only[*appsv1.Deployment](t, objects).Spec.Template.Spec
			for _, container := range pod.Containers {
				want := container.Name == "webhook" || name != "no impact warnings"
				for _, arg := range demand {
					if slices.Contains(container.Args, arg) != want {
						t.Errorf("%s has %s: %t in %q", container.Name, arg, !want, container.Args)
					}
				}
				mounted := slices.ContainsFunc(container.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == "clients" && m.MountPath == "/clients" })
				if want && !mounted {
					t.Errorf("%s mounts %v", container.Name, container.VolumeMounts)
				}
			}
			if !slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool {
				return v.Name == "clients" && v.Secret.SecretName == "clients" && len(v.Secret.Items) == 1
			}) {
				t.Errorf("volumes: %v", pod.Volumes)
			}
		})
	}
}

// The control plane's addresses reach the two ports; nobody else.
func TestTheControlPlaneAloneReachesThePorts(t *testing.T) {
	t.Parallel()
	objects := rendered(t, "networkPolicy.enabled=true", "networkPolicy.controlPlane={10.0.0.0/28,fd00::/64}")
	policy := only[*networkingv1.NetworkPolicy](t, objects)
	found := 0
	for _, rule := range policy.Spec.Ingress {
		for _, port := range rule.Ports {
			if port.Port.IntValue() != 8443 && port.Port.IntValue() != 8444 {
				continue
			}
			found++
			if len(rule.From) != 2 || rule.From[0].IPBlock.CIDR != "10.0.0.0/28" || rule.From[1].IPBlock.CIDR != "fd00::/64" {
				t.Fatalf("%v is reached from %v", port.Port, rule.From)
			}
		}
	}
	if found != 2 {
		t.Errorf("%d ports are reached, want two", found)
	}
	for _, rule := range only[*networkingv1.NetworkPolicy](t, rendered(t, "networkPolicy.enabled=true")).Spec.Ingress {
		if len(rule.From) > 0 {
			t.Errorf("without addresses %v is reached from %v only", rule.Ports, rule.From)
		}
	}
}
