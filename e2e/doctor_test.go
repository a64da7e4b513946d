package e2e

import "testing"

// doctor finds nothing wrong with a real installation but what is, and it finds what people
// have written wrongly, with nothing but the rights of its user.
func TestPlugin_Doctor(t *testing.T) {
	t.Parallel()
	s := run.Space(t)
	want := commands(t, s)
	s.Set("configmap/c", "k", "1")
	for _, name := range []string{"d", "held"} {
		s.Create(podless(name, "configmap/c"))
	}
	s.Settled("deployment/d", "deployment/held")
	// The authority of these tests is valid for a day, in both webhook configurations; doctor warns of less than two.
	// Everything was looked at.
	want(1, "doctor", "the certificate authority in its caBundle expires in 2",
		"1 warning. Nothing wrong: webhook, leader, reports, defaults, settings, dry run, records, pods. error: something is wrong")
	want(0, "version", "kubectl-configstamp dev", "in namespace ")

	s.SetPolicy("deployment/held", settings{"window": "Mon 25:00-26:00 UTC"})
	s.Kubectl("annotate", "configmap/c", "configstamp.dev/pin=maybe")
	s.Kubectl("label", "deployment/d", "configstamp.dev/pause=true")
	wrong := []string{
		"deployment/held in namespace " + s.Namespace + ": configstamp.dev/window:", `"25:00" is not a time of day`,
		"configmap/c in namespace " + s.Namespace + ": configstamp.dev/pin: ",
		"kubectl label deployment/d -n " + s.Namespace + " configstamp.dev/pause-",
	}
	want(1, "doctor", wrong...)

	viewers(t, s)
	want(1, "doctor --as somebody --as-group viewers", append(wrong, "Nothing wrong: defaults",
		"dry run: you have no right to patch", "webhook, certificate: mutatingwebhookconfigurations.admissionregistration.k8s.io is forbidden")...)
}
