package e2e

import (
	"strings"
	"testing"
)

// doctor finds nothing wrong with a real installation but what is, and it finds what people
// have written wrongly, with nothing but the rights of who asks.
func TestPlugin_Doctor(t *testing.T) {
	t.Parallel()
	s := run.Space(t)
	ask := plugin(t, s)
	s.Set("configmap/c", "k", "1")
	for _, name := range []string{"d", "held"} { // without pods, which nobody would run here
		s.Create(strings.Replace(deployment(name, "configmap/c"), "replicas: 1", "replicas: 0", 1))
	}
	s.Settled("deployment/d", "deployment/held")
	// The authority of these tests is valid for a day, in both webhook configurations; doctor warns of two.
	out, code := ask("doctor")
	words := strings.Join(strings.Fields(out), " ")
	if !strings.Contains(words, "the certificate authority in its caBundle expires in 2") || code != 1 || strings.Contains(words, "Not ") ||
		!strings.Contains(words, "2 warnings. Nothing wrong: server, webhook, dry run, key, leader, defaults, settings,") {
		t.Errorf("where all is well it ends with %d, and says\n%s", code, out)
	}

	s.SetPolicy("deployment/held", settings{"window": "Mon 25:00-26:00 UTC"})
	s.Kubectl("annotate", "configmap/c", "configstamp.dev/pin=maybe")
	s.Kubectl("patch", "deployment/d", "--type=json", "--patch", `[{"op":"add","path":"/spec/template/spec/containers/0/envFrom/-","value":{"secretRef":{"name":"no-such"}}}]`)
	out, code = ask("doctor", "-o", "wide")
	for _, part := range []string{
		"deployment/held in namespace " + s.Namespace + ": configstamp.dev/window:", `"25:00" is not a time of day`,
		"configmap/c in namespace " + s.Namespace + ": configstamp.dev/pin: ",
		"deployment/d in namespace " + s.Namespace + ": secret/no-such is required, but does not exist",
		"kubectl configstamp users secret/no-such -n " + s.Namespace,
	} {
		if !strings.Contains(out, part) || code != 1 {
			t.Errorf("want %q, exit code 1; got %d and\n%s", part, code, out)
		}
	}

	viewers(t, s)
	out, _ = ask("doctor", "--as", "somebody", "--as-group", "viewers")
	for _, part := range []string{"dry run: you have no right to patch", "mutatingwebhookconfigurations.admissionregistration.k8s.io: forbidden", "configstamp.dev/pin"} {
		if !strings.Contains(out, part) {
			t.Errorf("who may only view: want %q in\n%s", part, out)
		}
	}
	if strings.Contains(out, "Nothing wrong: server, webhook") {
		t.Errorf("what was not looked at is called well:\n%s", out)
	}
}
