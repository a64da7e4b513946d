package checksum_test

import (
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/configstamp/configstamp/checksum"
)

// FuzzSetting: whatever somebody writes is read without a panic, and what is
// accepted makes sense: it names something, and at every moment the policy knows
// when to look again.
func FuzzSetting(f *testing.F) {
	for _, seed := range [][2]string{
		{"only", "configmap/web-message,secret/db-*"}, {"ignore", "secret/[a-c]?"}, {"ignore", "secretproviderclass/*-vault"}, {"also", "configmap/a, secret/b"}, {"restart-on", "everything"},
		{"mode", "observe"}, {"pause", "2027-01-02T06:00:00+01:00"}, {"window", "Mon-Fri 22:00-04:00 Europe/Berlin; Sat 00:00-24:00 UTC"},
		{"min-interval", "1h30m"}, {"adopt", "restart"}, {"soak", "5m"}, {"ignore-keys", "build-*,*.md"}, {"window", "fri-MON,Wed 1:00-2:00 UTC"}, {"only", `configmap/\`}, {"pause", "true"},
	} {
		f.Add(seed[0], seed[1])
	}
	for _, setting := range checksum.Settings() {
		f.Add(setting.Name(), "5m")
	}
	f.Fuzz(func(t *testing.T, setting, value string) {
		policy := checksum.DefaultPolicy().With(onWorkload(setting, value))
		for _, fault := range policy.Faults {
			if fault.Want == "" || !strings.Contains(fault.Error(), fault.Key) {
				t.Fatalf("%q says nothing", fault.Error())
			}
		}
		for _, pattern := range append(policy.Only, policy.Ignore...) {
			if _, err := path.Match(pattern.Name, "a"); err != nil || pattern.Name == "" || !slices.Contains(checksum.Kinds(), pattern.Kind) {
				t.Fatalf("%q was accepted as %v", value, pattern)
			}
		}
		for _, source := range policy.Also {
			if !source.Nameable() {
				t.Fatalf("%q was accepted as %v", value, source)
			}
		}
		if policy.MinInterval < 0 || policy.Soak.For < 0 || policy.Soak.For > time.Hour || len(policy.Uses) == 0 {
			t.Fatalf("%q was accepted as %+v", value, policy)
		}
		now := time.Date(2026, 3, 28, 23, 0, 0, 0, time.UTC)
		for range 20 {
			hold, held := policy.HoldAt(now, now)
			if !held {
				break
			}
			if hold.Until.IsZero() {
				if hold.Reason.String() != "pause" {
					t.Fatalf("%q holds for ever by %s", value, hold.Reason.String())
				}
				break
			}
			if !hold.Until.After(now) {
				t.Fatalf("%q at %s: look again at %s", value, now, hold.Until)
			}
			if now = hold.Until; now.Year() > 9000 {
				break
			}
		}
		source := checksum.SourcePolicyOf(onWorkload(setting, value).Annotations)
		// "false" and "true" of these two are the default.
		if source != nil && source.Equal(&checksum.SourcePolicy{}) && setting != "ignore" && setting != "pin" {
			t.Fatalf("%q was accepted and means nothing", value)
		}
	})
}
