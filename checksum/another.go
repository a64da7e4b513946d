package checksum

import (
	"maps"
	"slices"
	"strings"
)

// Two installations of configstamp may serve one namespace. Neither holds the
// other's keys, and each other's values look to it as if their key was lost. They
// are told apart by asking: a recording re-admission goes through the webhooks of
// both, and a webhook that is asked by another installation's controller changes
// nothing and answers with a claim, which names those keys on record that it
// holds. A value that nobody claims is lost.

// Account says whose account sends a request.
type Account int

// The accounts.
const (
	// OwnAccount is the installation's own, or one of which nobody can tell.
	OwnAccount Account = iota
	// ServiceAccount is one of another namespace. A recording that it asks for is
	// another installation's.
	ServiceAccount
	// PersonalAccount is any other.
	PersonalAccount
)

// AccountOf reads a user's name for the installation in a namespace; "" is an
// installation of which that is not known.
func AccountOf(user, installation string) Account {
	account, is := strings.CutPrefix(user, "system:serviceaccount:")
	namespace, _, _ := strings.Cut(account, ":")
	switch {
	case installation == "" || user == "" || is && namespace == installation:
		return OwnAccount
	case is:
		return ServiceAccount
	}
	return PersonalAccount
}

// claim answers another installation's recording: it is not for us, and what we
// keep is said.
func claim(ring *Ring, a *Admission) Decision {
	decision := Decision{Records: a.Sent, Outcome: Kept}
	var ids []string
	for _, s := range a.Selections {
		value, _ := a.Held.Of(s.Source)
		id, _, ok := parseValue(value)
		if !ok || slices.Contains(ids, id) {
			continue
		}
		if _, known := ring.Key(id); known {
			ids = append(ids, id)
		}
	}
	if len(ids) > 0 {
		decision.Findings = []Finding{{Reason: Claimed, Key: strings.Join(ids, ","), Text: a.Installation}}
	}
	return decision
}

// concernsOthers reports whether a rolling re-admission may be meant for another
// installation: its controller may ask, or its webhook has answered before us.
func (a *Admission) concernsOthers() bool {
	return a.Account == ServiceAccount || a.Account == PersonalAccount && !maps.Equal(a.Sent.Stamps, a.Held.Stamps)
}

// leave answers such a one where a value is under a key that we do not hold:
// whether that is lost is for our controller to find out.
func leave(a *Admission, review Review) Decision {
	findings := append(review.Missing, review.Faults...)
	return Decision{Records: a.Sent, Outcome: Kept, Findings: append(findings, Finding{Reason: OtherKey})}
}

// stays is what a re-admission that changes nothing leaves on record: what is
// stored. But where a value is under a key that we do not hold, what another
// installation's webhook has answered is not ours to take back.
func stays(ring *Ring, a *Admission) Records {
	if !a.concernsOthers() {
		return a.Held
	}
	for _, s := range a.Selections {
		value, _ := a.Held.Of(s.Source)
		if _, unknown := ring.UnknownKey(value); unknown {
			return a.Sent
		}
	}
	return a.Held
}

// The parts of the sentence of Claimed, around the ids and the installation.
const (
	claimHead = "claimed: key "
	claimBody = " of the installation in namespace "
	claimTail = " is in use here"
)

// Claim is what another installation's webhook says of the keys on record.
type Claim struct {
	// Installation is its namespace.
	Installation string
	KeyIDs       []string
}

// ParseClaim reads an admission warning, if it is a claim.
func ParseClaim(warning string) (Claim, bool) {
	text, ok := strings.CutPrefix(warning, speaker+claimHead)
	ids, rest, found := strings.Cut(text, claimBody)
	installation, ended := strings.CutSuffix(rest, claimTail)
	if !ok || !found || !ended || !nameable(installation) {
		return Claim{}, false
	}
	c := Claim{Installation: installation, KeyIDs: strings.Split(ids, ",")}
	return c, !slices.ContainsFunc(c.KeyIDs, func(id string) bool { return !isHex(id, 2*idBytes) })
}

// nameable reports whether a namespace can have that name.
func nameable(namespace string) bool {
	return namespace != "" && len(namespace) <= nameLimit && strings.Trim(namespace, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}
