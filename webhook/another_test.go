package webhook

import "testing"

// TestANamespaceOfAnotherInstallationIsLeftAlone: whatever is asked for there.
func TestANamespaceOfAnotherInstallationIsLeftAlone(t *testing.T) {
	for name, patched := range map[string]bool{"other": false, "configstamp": true, " configstamp ": true} {
		for _, request := range []string{"rolling-untrue", "rolling-key-lost", "set-image", "apply-without-stamps", "create-deployment"} {
			c, _ := readCase(t, "testdata/cases/"+request+".yaml")
			c.Namespace = map[string]string{"configstamp.dev/installation": name}
			handler := c.handler(t)
			handler.Installation = "configstamp"
			asked := c.request(t, c.requested(t))
			asked.UserInfo.Username = "system:serviceaccount:configstamp:configstamp"
			answer := admit(silent(t), t, handler, asked)
			if is := answer.Patch != nil; is != patched || !patched && len(answer.Warnings) > 0 {
				t.Errorf("%s, named %q: patched: %t, want %t, warned %q", request, name, is, patched, answer.Warnings)
			}
		}
	}
}
