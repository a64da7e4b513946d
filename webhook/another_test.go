package webhook

import (
	"slices"
	"strings"
	"testing"

	"github.com/configstamp/configstamp/checksum"
)

// TestAnotherInstallationsRecordingIsLeftAloneAndClaimed: what its controller asks
// for is not for us; if what is on record is ours, we say so.
func TestAnotherInstallationsRecordingIsLeftAloneAndClaimed(t *testing.T) {
	const ours, theirs, person = "system:serviceaccount:configstamp:configstamp", "system:serviceaccount:other:configstamp", "kubernetes-admin"
	for name, test := range map[string]struct {
		request, manager, user string
		patched                bool
		claimed                bool
		warned                 string
	}{
		"ours, recorded by our controller":           {"rolling-true", checksum.RecordingManager, ours, false, false, ""},
		"ours, and another one asks":                 {"rolling-true", checksum.RecordingManager, theirs, false, true, ""},
		"ours, and a person asks":                    {"rolling-true", checksum.RecordingManager, person, false, false, ""},
		"ours and untrue, and another one asks":      {"rolling-untrue", checksum.RecordingManager, theirs, false, true, ""},
		"not ours, recorded by our controller":       {"rolling-key-lost", checksum.RecordingManager, ours, true, false, "recorded anew"},
		"not ours, and another one asks":             {"rolling-key-lost", checksum.RecordingManager, theirs, false, false, ""},
		"not ours, a roll by our controller":         {"rolling-key-lost", checksum.RollingManager, ours, true, false, "recorded anew"},
		"not ours, a roll by another one":            {"rolling-key-lost", checksum.RollingManager, theirs, false, false, "left as they are"},
		"not ours, an order by a person":             {"rolling-key-lost", checksum.RollingManager, person, true, false, "recorded anew"},
		"ours and untrue, an order by a person":      {"rolling-untrue", checksum.RollingManager, person, true, false, ""},
		"ours and untrue, a roll by another account": {"rolling-untrue", checksum.RollingManager, theirs, true, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := readCase(t, "testdata/cases/"+test.request+".yaml")
			handler := c.handler(t)
			handler.Installation = "configstamp"
			request := c.request(t, c.requested(t))
			request.UserInfo.Username = test.user
			setManager(request, test.manager)
			answer := admit(silent(t), t, handler, request)
			if patched := answer.Patch != nil; patched != test.patched {
				t.Errorf("patched: %t, want %t: %s", patched, test.patched, answer.Patch)
			}
			claimed := slices.ContainsFunc(answer.Warnings, func(warning string) bool {
				claim, ok := checksum.ParseClaim(warning)
				return ok && claim.Installation == "configstamp" && slices.Equal(claim.KeyIDs, []string{newKey.ID()})
			})
			if claimed != test.claimed {
				t.Errorf("claimed: %t, want %t: %q", claimed, test.claimed, answer.Warnings)
			}
			if text := strings.Join(answer.Warnings, "\n"); !strings.Contains(text, test.warned) {
				t.Errorf("warned %q, want %q", text, test.warned)
			}
		})
	}
}

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
