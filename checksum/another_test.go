package checksum_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/configstamp/configstamp/checksum"
)

// What another installation's webhook has answered before us, under a key that we do not hold,
// is not ours to take back, be it that freshness could not be proven.
func TestWhatAnotherInstallationAnsweredIsNotTakenBack(t *testing.T) {
	theirs := key(3)
	selections := checksum.Selections(reads, checksum.DefaultPolicy())
	held := checksum.Records{Stamps: present.stamps(theirs, message, password, extra)}
	sent := checksum.Records{Stamps: edited.stamps(theirs, message, password, extra)}
	for _, own := range []bool{true, false} {
		for _, fresh := range []bool{true, false} {
			admission := checksum.Admission{
				Namespace: namespace, Asker: checksum.Roller, Own: own, Policy: checksum.DefaultPolicy(),
				Selections: selections, Held: held, Sent: sent, Fresh: fresh, Content: func(s checksum.Source) *checksum.Content { return edited[s] },
			}
			if stays := cmp.Equal(checksum.Decide(ring, admission).Records, sent); stays == own {
				t.Errorf("own account %t, fresh %t: what was sent stays: %t", own, fresh, stays)
			}
			admission.Held.Stamps = present.stamps(key(2), message, password, extra)
			if cmp.Equal(checksum.Decide(ring, admission).Records, sent) {
				t.Errorf("own account %t, fresh %t: values of ours are replaced by what was sent", own, fresh)
			}
		}
	}
}

func TestIsOwn(t *testing.T) {
	for user, want := range map[string]bool{
		"system:serviceaccount:configstamp:configstamp": true,
		"system:serviceaccount:other:configstamp":       false,
		"system:serviceaccount:configstamp-2:x":         false,
		"kubernetes-admin":                              false,
		"":                                              false,
	} {
		if got := checksum.IsOwn(user, "configstamp"); got != want {
			t.Errorf("%q is our own: %t, want %t", user, got, want)
		}
		if checksum.IsOwn(user, "") {
			t.Errorf("%q is our own where nobody can tell", user)
		}
	}
}
