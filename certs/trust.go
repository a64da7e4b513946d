package certs

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"slices"
	"time"
)

// retiredHeader is the PEM header by which the Secret remembers since when an authority no longer signs.
const retiredHeader = "Retired"

// mostTrusted bounds the authorities that are trusted at once, should something replace them in a loop.
const mostTrusted = 8

// trust is what clients are to trust: the authority that signs now comes first, then those that
// signed before it, the latest first. It is kept beside the authority in the same Secret, so that all
// replicas, and one that starts in the middle of a rotation, come to the same answer.
type trust []trusted

type trusted struct {
	ca *x509.Certificate
	// retired is when another authority took the place of this one; zero while it signs, or as long as nobody has noted the time.
	retired time.Time
}

// readTrust reads what encode has written. Whatever is not an authority's certificate is skipped:
// other hands can write the Secret. A time that cannot be read counts as not noted.
func readTrust(data []byte) trust {
	var t trust
	for len(t) < mostTrusted {
		block, rest := pem.Decode(data)
		if block == nil {
			break
		}
		data = rest
		if block.Type != "CERTIFICATE" {
			continue
		}
		ca, err := x509.ParseCertificate(block.Bytes)
		if err != nil || !ca.IsCA || t.find(ca) >= 0 {
			continue
		}
		retired, _ := time.Parse(time.RFC3339, block.Headers[retiredHeader])
		t = append(t, trusted{ca, retired})
	}
	return t
}

// next is the trust that follows when signing is the authority that signs now: it comes first,
// those it displaced are noted as retired now, and those that have been so for overlap, or have
// expired, are dropped. Applied again at the same time it changes nothing.
func (t trust) next(signing *x509.Certificate, now time.Time, overlap time.Duration) trust {
	result := trust{{ca: signing}}
	for _, old := range t {
		if old.ca.Equal(signing) {
			continue
		}
		if old.retired.IsZero() || old.retired.After(now) {
			old.retired = now.UTC().Truncate(time.Second)
		}
		if now.Sub(old.retired) < overlap && now.Before(old.ca.NotAfter) && len(result) < mostTrusted {
			result = append(result, old)
		}
	}
	return result
}

// and adds what another has and this one has not.
func (t trust) and(other trust) trust {
	t = slices.Clone(t)
	for _, o := range other {
		if t.find(o.ca) < 0 {
			t = append(t, o)
		}
	}
	return t
}

// without leaves out what another has.
func (t trust) without(other trust) trust {
	return slices.DeleteFunc(slices.Clone(t), func(o trusted) bool { return other.find(o.ca) >= 0 })
}

// sameBundle reports whether two caBundles hold the same, in any order: cert-manager
// has an order of its own, and would be written to again and again.
func sameBundle(a, b []byte) bool {
	return bytes.Equal(a, b) || len(a) == len(b) && len(readTrust(a)) == len(readTrust(b)) && len(readTrust(a).without(readTrust(b))) == 0
}

func (t trust) find(ca *x509.Certificate) int {
	return slices.IndexFunc(t, func(o trusted) bool { return o.ca.Equal(ca) })
}

// encode is the form kept in the Secret: PEM, with the time of retirement as a header.
func (t trust) encode() []byte {
	var out bytes.Buffer
	for _, o := range t {
		block := &pem.Block{Type: "CERTIFICATE", Bytes: o.ca.Raw}
		if !o.retired.IsZero() {
			block.Headers = map[string]string{retiredHeader: o.retired.Format(time.RFC3339)}
		}
		_ = pem.Encode(&out, block) // a buffer never fails, nor does a header without a colon
	}
	return out.Bytes()
}

// caBundle is the form that the API server reads: plain PEM (it skips blocks with headers).
func (t trust) caBundle() []byte {
	t = slices.Clone(t)
	for i := range t {
		t[i].retired = time.Time{}
	}
	return t.encode()
}
