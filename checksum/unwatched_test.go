package checksum_test

import (
	"testing"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/reason"
)

// Where no Secret can be read, none is asked for, stamped, or missing; what was stamped once
// restarts nothing.
func TestWhereConfigMapsAloneCount(t *testing.T) {
	password := checksum.Source{Kind: checksum.Secret, Name: "password"}
	references := []checksum.Reference{
		{Source: message, Use: checksum.Startup, All: true},
		{Source: password, Use: checksum.Startup, Keys: []string{"k"}, RequiredKeys: []string{"k"}},
	}
	ring := checksum.NewRing(key(1))
	policy := checksum.DefaultPolicy()
	policy.ConfigMapsAlone, policy.Also = true, []checksum.Source{password}
	admission := admissionCase{
		Namespace: "shop", Create: true, Fresh: true, Policy: policy, Selections: checksum.Selections(references, policy),
		Content: func(source checksum.Source) *checksum.Content {
			if source == password {
				t.Error("the Secret is asked for")
			}
			return &checksum.Content{}
		},
	}
	made := decide(ring, admission)
	if _, stamped := made.Records.Of(password); stamped || len(made.Records.Stamps) != 1 || len(made.Findings) != 0 {
		t.Errorf("on record: %v, and found %v", made.Records, made.Findings)
	}
	made.Records.Stamps[checksum.StampKey(password)] = "v1:absent"
	if review := ring.Review("shop", &policy, admission.Selections, made.Records, admission.Content); len(review.Untrue) != 0 || review.Records() || !review.MayRoll() {
		t.Errorf("with a stamp of before it is %+v", review)
	}
	admission.Create, admission.Held = false, made.Records
	if kept := decide(ring, admission); kept.Records.Stamps[checksum.StampKey(password)] != "v1:absent" {
		t.Errorf("on record after another admission: %v", kept.Records)
	}
}

// A Secret of Helm's type is there, and nobody watches it: it is not stamped, and holds nothing.
func TestASecretThatIsNotWatched(t *testing.T) {
	release := checksum.Source{Kind: checksum.Secret, Name: "release"}
	references := []checksum.Reference{
		{Source: message, Use: checksum.Startup, All: true},
		{Source: release, Use: checksum.Startup, Keys: []string{"k"}, RequiredKeys: []string{"k"}},
	}
	ring := checksum.NewRing(key(1))
	policy := checksum.DefaultPolicy()
	admission := admissionCase{
		Namespace: "shop", Create: true, Fresh: true, Policy: policy, Selections: checksum.Selections(references, policy),
		Content: func(source checksum.Source) *checksum.Content {
			if source == release {
				return &checksum.Content{Unwatched: true}
			}
			return &checksum.Content{}
		},
	}
	made := decide(ring, admission)
	if _, stamped := made.Records.Of(release); stamped || len(made.Records.Stamps) != 1 {
		t.Errorf("on record: %v", made.Records)
	}
	if len(made.Findings) != 1 || made.Findings[0] != (checksum.Finding{Reason: reason.NotWatched, Source: release}) {
		t.Errorf("found %v", made.Findings)
	}
	held := checksum.Records{Stamps: map[string]string{checksum.StampKey(message): "v1:absent", checksum.StampKey(release): "v1:absent"}}
	if review := ring.Review("shop", &policy, admission.Selections, held, admission.Content); !review.MayRoll() || len(review.Untrue) != 1 || review.Records() {
		t.Errorf("it is %+v", review)
	}
}
