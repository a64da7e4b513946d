// Package deploy has nothing but the tests of the chart: what it renders for
// which values, and what it refuses. They need helm, by the environment variable
// HELM: "make chart" sets it.
package deploy

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/workload"
)

// template runs helm template with values, as --set takes them.
func template(t *testing.T, values ...string) (manifest []byte, complaint string) {
	t.Helper()
	helm := os.Getenv("HELM")
	if helm == "" {
		t.Fatal("these tests need helm: run make chart")
	}
	args := []string{"template", "configstamp", "chart", "--namespace=configstamp"}
	for _, value := range values {
		if strings.HasPrefix(value, "--") { // an argument of helm
			args = append(args, value)
			continue
		}
		args = append(args, "--set", value)
	}
	manifest, err := exec.CommandContext(t.Context(), helm, args...).Output()
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		return nil, string(exit.Stderr)
	} else if err != nil {
		t.Fatal(err)
	}
	return manifest, ""
}

// everything is all that can be on together.
var everything = []string{
	"dialects={reloader,wave}", "secretProviderClasses=true", "networkPolicy.enabled=true", "flowControl.enabled=true",
	"metrics.exposure=tls", "metrics.podMonitor.enabled=true", "metrics.rules.enabled=true", "metrics.dashboard.enabled=true",
	"policy.restartOn=startup", "policy.pause=true", "log.format=text", "log.verbosity=2",
	"workloads[0].group=example.com", "workloads[0].version=v1", "workloads[0].resource=engines", "workloads[0].template=spec.deep.template", "workloads[0].rollout=Ready",
	"webhook.extraArgs={--freshness-timeout=1s}", "priorityClassName=high", "imagePullSecrets[0].name=pull", "podLabels.team=x",
	"impact.secrets=true", "impact.serviceAccounts={ci/deployer}",
	"clientCertificates.ca.configMap=clients", "clientCertificates.names={kube-apiserver,other}", "networkPolicy.controlPlane={10.0.0.0/28,fd00::/64}",
	"pins.enabled=true", "policy.pin=true", "pins.snapshots=3", "admissionPolicy.alsoOnSnapshots={team,example.com/owner}", "keepStamps=on",
}

// variants are values that have to render well.
var variants = map[string][]string{
	"nothing set":             nil,
	"self-managed":            {"certificates.mode=self-managed"},
	"another issuer":          {"certificates.issuerRef.name=corporate", "certificates.issuerRef.kind=ClusterIssuer"},
	"namespaced":              {"namespaces={a,b}", "keepStamps=on"},
	"namespaced, and signed":  {"namespaces={a}", "certificates.mode=self-managed"},
	"one replica":             {"replicas=1"},
	"loopback":                {"metrics.exposure=loopback"},
	"a service monitor":       {"metrics.serviceMonitor.enabled=true"},
	"the namespace":           {"namespace.create=true"},
	"the whole cluster":       {"optIn=all", "pins.enabled=true", "dialects={wave}", "impact.secrets=true", "keepStamps=on"},
	"without a policy":        {"admissionPolicy.enabled=false"},
	"pins":                    {"pins.enabled=true"},
	"pins, namespaced":        {"namespaces={a,b}", "pins.enabled=true"},
	"Secrets alone":           {"impact.configMaps=false", "impact.secrets=true"},
	"without warnings":        {"impact.configMaps=false", "certificates.mode=self-managed"},
	"the node's network":      {"hostNetwork=true", "namespace.create=true"},
	"other ports":             append(slices.Clone(otherPorts), "metrics.exposure=tls"),
	"everything":              everything,
	"everything, self-signed": append(slices.Clone(everything), "certificates.mode=self-managed"),
}

// rendered are the objects of a manifest. Those of Kubernetes itself are read
// strictly: a field that does not exist, or is there twice, is an error.
func rendered(t *testing.T, values ...string) []runtime.Object {
	t.Helper()
	manifest, complaint := template(t, values...)
	if complaint != "" {
		t.Fatal(complaint)
	}
	strict := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, json.SerializerOptions{Yaml: true, Strict: true})
	var objects []runtime.Object
	for _, text := range bytes.Split(manifest, []byte("\n---\n")) {
		object, _, err := strict.Decode(text, nil, nil)
		switch {
		case runtime.IsNotRegisteredError(err): // cert-manager's and Prometheus Operator's
			custom := &unstructured.Unstructured{}
			if err := yaml.UnmarshalStrict(text, &custom.Object); err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			object = custom
		case err != nil:
			t.Fatalf("%v\n%s", err, text)
		}
		objects = append(objects, object)
	}
	return objects
}

// only is the one object of a type.
func only[T runtime.Object](t *testing.T, objects []runtime.Object) T {
	t.Helper()
	found := all[T](objects)
	if len(found) != 1 {
		t.Fatalf("there are %d of %T, want one", len(found), *new(T))
	}
	return found[0]
}

func all[T runtime.Object](objects []runtime.Object) (found []T) {
	for _, object := range objects {
		if typed, ok := object.(T); ok {
			found = append(found, typed)
		}
	}
	return found
}

// flags are those that a command of the product knows.
func flags(t *testing.T, command string) map[string]bool {
	t.Helper()
	help, err := exec.CommandContext(t.Context(), "go", "run", "../cmd/configstamp", command, "--help").Output()
	if err != nil {
		t.Fatalf("asking %s for its flags: %v", command, err)
	}
	known := map[string]bool{"-v": true}
	for field := range strings.FieldsSeq(string(help)) {
		if strings.HasPrefix(field, "--") {
			known[strings.TrimRight(field, ",")] = true
		}
	}
	return known
}

// YAML has its own mind about words and numbers.
func TestValuesOfAFileAreWhatTheySay(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "values.yaml")
	text := "policy: {pause: true}\nrollouts: {step: off, maxUnsettled: 1000000}\nnamespaces: ['2024', 'on', 'null']\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	objects := rendered(t, "--values="+file)
	args := only[*appsv1.Deployment](t, objects).Spec.Template.Spec.Containers[1].Args
	for _, want := range []string{"--step=off", "--pause=true", "--max-unsettled=1000000", "--namespaces=2024,on,null"} {
		if !slices.Contains(args, want) {
			t.Errorf("no %s in %q", want, args)
		}
	}
	for _, binding := range all[*rbacv1.RoleBinding](objects) {
		if !slices.Contains([]string{"2024", "on", "null", "configstamp"}, binding.Namespace) {
			t.Errorf("a RoleBinding in %q", binding.Namespace)
		}
	}
}

func TestEveryFlagIsKnown(t *testing.T) {
	t.Parallel()
	known := map[string]map[string]bool{"webhook": flags(t, "webhook"), "controller": flags(t, "controller")}
	for name, values := range variants {
		t.Run(name, func(t *testing.T) {
			objects := rendered(t, values...)
			for _, container := range only[*appsv1.Deployment](t, objects).Spec.Template.Spec.Containers {
				for _, arg := range container.Args[1:] {
					if flag, _, _ := strings.Cut(arg, "="); !known[container.Args[0]][flag] {
						t.Errorf("%s has no flag %s", container.Args[0], flag)
					}
				}
			}
		})
	}
}

func TestPodsAreRestricted(t *testing.T) {
	t.Parallel()
	for name, values := range variants {
		t.Run(name, func(t *testing.T) {
			objects := rendered(t, values...)
			spec := only[*appsv1.Deployment](t, objects).Spec.Template.Spec
			if !*spec.SecurityContext.RunAsNonRoot || spec.SecurityContext.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
				t.Errorf("of Pods: %v", spec.SecurityContext)
			}
			for _, container := range spec.Containers {
				may := container.SecurityContext
				if *may.AllowPrivilegeEscalation || !*may.ReadOnlyRootFilesystem || !slices.Equal(may.Capabilities.Drop, []corev1.Capability{"ALL"}) {
					t.Errorf("of container %s: %v", container.Name, may)
				}
				if container.Resources.Limits.Memory().IsZero() || container.Resources.Requests.Cpu().IsZero() {
					t.Errorf("container %s: no resources", container.Name)
				}
			}
			for _, container := range spec.Containers { // and the garbage collector is told what it may take, in bytes
				at := slices.IndexFunc(container.Env, func(v corev1.EnvVar) bool { return v.Name == "CONFIGSTAMP_MEMORY_LIMIT" })
				if at < 0 {
					t.Fatalf("%s is told no limit", container.Name)
				}
				if told := container.Env[at].ValueFrom.ResourceFieldRef; told.ContainerName != container.Name || told.Resource != "limits.memory" || !told.Divisor.IsZero() {
					t.Errorf("%s is told %v", container.Name, told)
				}
			}
		})
	}
}

// Our own account may write all that the webhook answers an empty patch of ours with.
func TestEveryAnnotationOfOursIsInThePolicy(t *testing.T) {
	t.Parallel()
	policy := all[*admissionregistrationv1.ValidatingAdmissionPolicy](rendered(t, everything...))[0]
	for _, key := range append(checksum.OursOnWorkload(), checksum.PinsAnnotation, checksum.PinnedAnnotation) {
		named := slices.ContainsFunc(policy.Spec.Variables, func(v admissionregistrationv1.Variable) bool { return strings.Contains(v.Expression, "'"+key+"'") })
		if !named {
			t.Errorf("the policy of our own account does not let it write %s", key)
		}
	}
}

// What is stamped can be patched, is watched, and is guarded by the policy.
func TestEveryKindIsInRulesRightsAndPolicy(t *testing.T) {
	t.Parallel()
	objects := rendered(t, everything...)
	configuration := only[*admissionregistrationv1.MutatingWebhookConfiguration](t, objects)
	role := all[*rbacv1.ClusterRole](objects)[0]
	policy := all[*admissionregistrationv1.ValidatingAdmissionPolicy](objects)[0]
	for _, webhook := range configuration.Webhooks {
		for _, rule := range webhook.Rules {
			updated := slices.Contains(rule.Operations, admissionregistrationv1.Update)
			for _, resource := range rule.Resources {
				kind, builtin := workload.Builtin().Find(rule.APIGroups[0], resource)
				if builtin && updated != (!kind.CreateOnly || kind.Immutable) {
					t.Errorf("%s in %s: asked about updates: %t", kind, webhook.Name, updated)
				}
				if builtin && kind.CreateOnly {
					continue // stamped once, and never patched
				}
				patched := slices.ContainsFunc(role.Rules, func(right rbacv1.PolicyRule) bool {
					return slices.Equal(right.APIGroups, rule.APIGroups) && slices.Contains(right.Resources, resource) && slices.Contains(right.Verbs, "patch")
				})
				guarded := slices.ContainsFunc(policy.Spec.MatchConstraints.ResourceRules, func(guard admissionregistrationv1.NamedRuleWithOperations) bool {
					return slices.Equal(guard.APIGroups, rule.APIGroups) && slices.Contains(guard.Resources, resource)
				})
				if !patched || !guarded {
					t.Errorf("%v %s in %s: may be patched: %t, guarded: %t", rule.APIGroups, resource, webhook.Name, patched, guarded)
				}
			}
		}
	}
	if len(configuration.Webhooks) != 4 {
		t.Errorf("%d entries, want 4", len(configuration.Webhooks))
	}
}

// Who is an admin of namespaces alone cannot install it.
func TestNamespacedModeHasNoPolicyOfSpelling(t *testing.T) {
	t.Parallel()
	for name, values := range variants {
		there := slices.ContainsFunc(all[*admissionregistrationv1.ValidatingAdmissionPolicy](rendered(t, values...)), func(p *admissionregistrationv1.ValidatingAdmissionPolicy) bool {
			return p.Name == "configstamp-spelling"
		})
		off := slices.ContainsFunc(values, func(value string) bool {
			return strings.HasPrefix(value, "namespaces=") || value == "admissionPolicy.enabled=false"
		})
		if there == off {
			t.Errorf("%s: there is a policy of spelling: %t", name, there)
		}
	}
}

func TestNamespacedModeHasNoRightToASecretElsewhere(t *testing.T) {
	t.Parallel()
	for _, values := range [][]string{{"namespaces={a,b}"}, {"namespaces={a,b}", "certificates.mode=self-managed"}} {
		objects := rendered(t, values...)
		for _, role := range all[*rbacv1.ClusterRole](objects) {
			for _, rule := range role.Rules {
				ours := slices.Equal(rule.APIGroups, []string{"admissionregistration.k8s.io"}) && slices.Equal(rule.ResourceNames, []string{"configstamp"})
				if !ours || !slices.Contains(rule.Resources, "mutatingwebhookconfigurations") {
					t.Errorf("%v: ClusterRole %s has %v", values, role.Name, rule)
				}
				if own := role.Name == "configstamp-certificate"; own && !slices.Equal(rule.Verbs, []string{"patch"}) {
					t.Errorf("%v: verbs %v on our webhook configurations", values, rule.Verbs)
				}
			}
		}
		var in []string
		for _, role := range all[*rbacv1.Role](objects) {
			in = append(in, role.Namespace)
		}
		slices.Sort(in)
		if in = slices.Compact(in); !slices.Equal(in, []string{"a", "b", "configstamp"}) {
			t.Errorf("%v: Roles in %v", values, in)
		}
	}
}

// Under server-side apply an entry that goes away leaves the caBundle of another
// manager behind, and the upgrade fails. That for Pods comes with pins, and stays where Helm
// finds it in the cluster (e2e/pods, WithPins).
func TestEntriesNeverGoAway(t *testing.T) {
	t.Parallel()
	names := func(values ...string) (names []string) {
		for _, webhook := range only[*admissionregistrationv1.MutatingWebhookConfiguration](t, rendered(t, values...)).Webhooks {
			names = append(names, webhook.Name)
			if *webhook.MatchPolicy != admissionregistrationv1.Equivalent || *webhook.ReinvocationPolicy != admissionregistrationv1.IfNeededReinvocationPolicy {
				t.Errorf("%s: matchPolicy %s, reinvocationPolicy %s", webhook.Name, *webhook.MatchPolicy, *webhook.ReinvocationPolicy)
			}
		}
		return names
	}
	want := names()
	for name, values := range variants {
		want := slices.Clone(want)
		if slices.Contains(values, "pins.enabled=true") {
			want = append(want, "pins.configstamp.dev")
		}
		if got := names(values...); !slices.Equal(got, want) {
			t.Errorf("%s: entries %v, want %v", name, got, want)
		}
	}
}

// e2e/oracle asks the policy; this is that it knows the values.
func TestThePolicyKnowsWhatTheValuesServe(t *testing.T) {
	t.Parallel()
	for values, want := range map[string]struct{ has, lacks []string }{
		"":                                 {[]string{"['kube-system', 'configstamp']", "namespaceObject"}, []string{"reloader", "wave"}},
		"excludedNamespaces={a,b}":         {[]string{"['a', 'b', 'configstamp']"}, []string{"kube-system"}},
		"dialects={reloader}":              {[]string{"reloader.stakater.com/"}, []string{"wave"}},
		"dialects={wave}":                  {[]string{"wave.pusher.com/"}, []string{"reloader"}},
		"settings.dialects=true":           {[]string{"reloader.stakater.com/", "wave.pusher.com/"}, nil},
		"namespaces={a,b},dialects={wave}": {[]string{"['a', 'b']", "!= 'disabled'"}, []string{"namespaceObject", "wave", "kube-system"}},
	} {
		policy := all[*admissionregistrationv1.ValidatingAdmissionPolicy](rendered(t, values))[0]
		served := slices.IndexFunc(policy.Spec.Variables, func(v admissionregistrationv1.Variable) bool { return v.Name == "served" })
		if served < 0 || !strings.Contains(policy.Spec.Validations[0].Expression, "variables.served") {
			t.Fatalf("%s: nothing asks whether a workload is opted in", values)
		}
		expression := policy.Spec.Variables[served].Expression
		for _, text := range want.has {
			if !strings.Contains(expression, text) {
				t.Errorf("%s: no %s in %s", values, text, expression)
			}
		}
		for _, text := range want.lacks {
			if strings.Contains(expression, text) {
				t.Errorf("%s: there is %s in %s", values, text, expression)
			}
		}
	}
}

// cert-manager and configstamp make authorities with keys of different kinds, and
// neither can go on with the other's. A Secret that a change of modes takes out of
// the release would be made again by the Pods of the former mode.
func TestWaysToHaveCertificatesShareNoSecretAndLeaveNone(t *testing.T) {
	t.Parallel()
	secrets := func(values ...string) (names []string) {
		for _, secret := range all[*corev1.Secret](rendered(t, values...)) {
			names = append(names, secret.Name)
		}
		slices.Sort(names)
		return names
	}
	issued := map[string]bool{}
	for _, object := range all[*unstructured.Unstructured](rendered(t)) {
		if name, found, _ := unstructured.NestedString(object.Object, "spec", "secretName"); found {
			issued[name] = true
		}
	}
	for _, arg := range only[*appsv1.Deployment](t, rendered(t, "certificates.mode=self-managed")).Spec.Template.Spec.Containers[0].Args {
		if name, ours := strings.CutPrefix(arg, "--name="); ours && (issued[name+"-authority"] || len(issued) != 2) {
			t.Errorf("we sign with %s-authority, cert-manager fills %v", name, issued)
		}
	}
	want := secrets()
	for name, values := range variants {
		if got := secrets(values...); !slices.Equal(got, want) {
			t.Errorf("%s: Secrets %v, want %v", name, got, want)
		}
	}
	for name := range issued {
		if !slices.Contains(want, name) {
			t.Errorf("%s does not belong to the release, and stays when it goes", name)
		}
	}
}

func TestWithOneReplicaNothingHoldsUpADrain(t *testing.T) {
	t.Parallel()
	if budgets := all[*policyv1.PodDisruptionBudget](rendered(t, "replicas=1")); len(budgets) > 0 {
		t.Error("there is a PodDisruptionBudget")
	}
	only[*policyv1.PodDisruptionBudget](t, rendered(t))
}

func TestImage(t *testing.T) {
	t.Parallel()
	digest := "sha256:" + strings.Repeat("a", 64)
	for _, test := range []struct{ set, want string }{
		{"image.tag=", "configstamp:dev"},
		{"image.tag=v1", "configstamp:v1"},
		{"image.digest=" + digest, "configstamp@" + digest},
		{"image.repository=mirror/x", "mirror/x:dev"},
	} {
		for _, container := range only[*appsv1.Deployment](t, rendered(t, test.set)).Spec.Template.Spec.Containers {
			if container.Image != test.want {
				t.Errorf("%s: %s, want %s", test.set, container.Image, test.want)
			}
		}
	}
}

func TestWrongValuesAreRefusedByName(t *testing.T) {
	t.Parallel()
	for values, want := range map[string]string{
		"replicas=0":                                                "/replicas",
		"replicas=many":                                             "/replicas",
		"failurePolicy=Fail":                                        "failurePolicy",
		"webhook.failurePolicy=Maybe":                               "'Ignore', 'Fail'",
		"webhook.timeoutSeconds=31":                                 "/webhook/timeoutSeconds",
		"rollouts.step=none":                                        "/rollouts/step",
		"rollouts.soak=soon":                                        "/rollouts/soak",
		"rollouts.firstSoak=soon":                                   "/rollouts/firstSoak",
		"rollouts.replicated=alone":                                 "'together', 'each'",
		"policy.mode=dry":                                           "/policy/mode",
		"dialects={flux}":                                           "'reloader', 'wave'",
		"certificates.minTLSVersion=1.1":                            "/certificates/minTLSVersion",
		"sources={secrets}":                                         "/sources",
		"sources={configmaps},impact.secrets=true":                  "nothing is known of Secrets",
		"namespaces={A_B}":                                          "/namespaces/0",
		"namespaces={configstamp}":                                  "configstamp's own namespace",
		"certificates.mode=none":                                    "'cert-manager', 'self-managed'",
		"certificates.issuer=x":                                     "issuer",
		"metrics.exposure=public":                                   "/metrics/exposure",
		"image.digest=sha256:abc":                                   "/image/digest",
		"workloads[0].group=example.com":                            "missing properties",
		"controller.extraArgs={settle=1s}":                          "/controller/extraArgs/0",
		"log.verbosity=8":                                           "/log/verbosity",
		"webhook.port=443":                                          "/webhook/port",
		"excludedNamespaces=null":                                   "missing property 'excludedNamespaces'",
		"webhook.metricsPort=null":                                  "give your values file instead",
		"dnsPolicy=None-at-all":                                     "/dnsPolicy",
		"controller.metricsPort=8443":                               "webhook.port and controller.metricsPort are both 8443",
		"commonLabels.helm\\.sh/chart=x":                            "a label that the chart sets",
		"hostNetwork=true,webhook.port=10250":                       "the kubelet's own port",
		"hostNetwork=true,networkPolicy.enabled=true":               "does nothing for Pods with hostNetwork",
		"metrics.exposure=loopback,metrics.podMonitor.enabled=true": "loopback cannot be scraped",
		"metrics.serviceMonitor.enabled=true,metrics.podMonitor.enabled=true": "twice",
		"clientCertificates.names={a}":                                        "give ca and names, or neither",
		"clientCertificates.ca.secret=a":                                      "give ca and names, or neither",
		"clientCertificates.ca.file=a":                                        "/clientCertificates/ca",
		"networkPolicy.controlPlane={10.0.0.1}":                               "/networkPolicy/controlPlane/0",
		"impact.port=443":                                                     "/impact/port",
		"impact.port=null":                                                    "give your values file instead",
		"impact.port=8443":                                                    "webhook.port and impact.port are both 8443",
		"impact.serviceAccounts={deployer}":                                   "/impact/serviceAccounts/0",
		"impact.serviceAccounts={ci/'x}":                                      "/impact/serviceAccounts/0",
		"hostNetwork=true,impact.port=10250":                                  "the kubelet's own port",
		"impact.secrets=yes":                                                  "/impact/secrets",
		"pins.enabled=yes":                                                    "/pins/enabled",
		"pins.snapshots=-1":                                                   "/pins/snapshots",
		"pins.grace=soon":                                                     "/pins/grace",
		"policy.pin=yes":                                                      "/policy/pin",
		"admissionPolicy.alsoOnSnapshots={a'}":                                "/admissionPolicy/alsoOnSnapshots/0",
	} {
		if _, complaint := template(t, values); !strings.Contains(complaint, want) {
			t.Errorf("%s: %q, want something about %s", values, complaint, want)
		}
	}
}
