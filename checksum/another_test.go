package checksum_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/configstamp/configstamp/checksum"
)

// What a webhook leaves of a re-admission that another installation's webhook has
// answered before it: its values, under a key that we do not hold, are not ours to
// take back, be it that freshness could not be proven.
func TestWhatAnotherInstallationAnsweredIsNotTakenBack(t *testing.T) {
	theirs := key(3)
	selections := checksum.Selections(reads, checksum.DefaultPolicy())
	held := checksum.Records{Stamps: present.stamps(theirs, message, password, extra)}
	sent := checksum.Records{Stamps: edited.stamps(theirs, message, password, extra)}
	for about, account := range map[string]checksum.Account{"own": checksum.OwnAccount, "service": checksum.ServiceAccount, "person": checksum.PersonalAccount} {
		for _, fresh := range []bool{true, false} {
			admission := checksum.Admission{
				Namespace: namespace, Asker: checksum.Roller, Account: account, Installation: "configstamp", Policy: checksum.DefaultPolicy(),
				Selections: selections, Held: held, Sent: sent, Fresh: fresh, Content: func(s checksum.Source) *checksum.Content { return edited[s] },
			}
			stays := cmp.Equal(checksum.Decide(ring, admission).Records, sent)
			if want := account != checksum.OwnAccount; stays != want {
				t.Errorf("%s account, fresh %t: what was sent stays: %t, want %t", about, fresh, stays, want)
			}
			admission.Held.Stamps = present.stamps(key(2), message, password, extra)
			if cmp.Equal(checksum.Decide(ring, admission).Records, sent) {
				t.Errorf("%s account, fresh %t: values of ours are replaced by what was sent", about, fresh)
			}
		}
	}
}

func TestParseClaim(t *testing.T) {
	written := checksum.Finding{Reason: checksum.Claimed, Key: "47c2bf08,00000000", Text: "configstamp"}.Warning()
	want := checksum.Claim{Installation: "configstamp", KeyIDs: []string{"47c2bf08", "00000000"}}
	if got, ok := checksum.ParseClaim(written); !ok || !cmp.Equal(got, want) {
		t.Errorf("%q is read as %+v, %t", written, got, ok)
	}
	for _, other := range []string{
		"", "configstamp: claimed: key ", strings.Replace(written, "configstamp: ", "", 1), written + ".", strings.Replace(written, "47c2bf08", "47C2BF08", 1),
		strings.Replace(written, "47c2bf08", "", 1), strings.Replace(written, "namespace configstamp", "namespace ", 1),
		strings.Replace(written, "namespace configstamp", "namespace <b>x</b>", 1),
		checksum.Finding{Reason: checksum.LostRecord, Source: message}.Warning(),
	} {
		if got, ok := checksum.ParseClaim(other); ok {
			t.Errorf("%q is read as %+v", other, got)
		}
	}
}

func TestAccountOf(t *testing.T) {
	for user, want := range map[string]checksum.Account{
		"system:serviceaccount:configstamp:configstamp": checksum.OwnAccount,
		"system:serviceaccount:other:configstamp":       checksum.ServiceAccount,
		"system:serviceaccount:configstamp-2:x":         checksum.ServiceAccount,
		"kubernetes-admin":                              checksum.PersonalAccount,
		"":                                              checksum.OwnAccount,
	} {
		if got := checksum.AccountOf(user, "configstamp"); got != want {
			t.Errorf("%q is account %d, want %d", user, got, want)
		}
		if got := checksum.AccountOf(user, ""); got != checksum.OwnAccount {
			t.Errorf("%q is account %d where nobody can tell", user, got)
		}
	}
}
