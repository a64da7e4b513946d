package checksum_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/configstamp/configstamp/checksum"
)

func TestAKeyIsNeverPrinted(t *testing.T) {
	material := []byte("0123456789abcdefSECRETSECRETSECR")
	k, err := checksum.NewKey(material)
	if err != nil {
		t.Fatal(err)
	}
	holder := struct{ inner checksum.Key }{k}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x", "%X"} {
		for _, value := range []any{k, &k, checksum.NewRing(k), *checksum.NewRing(k), holder, &holder, []checksum.Key{k}} {
			printed := fmt.Sprintf(verb, value)
			for _, form := range []string{string(material), fmt.Sprintf("%x", material[:8]), fmt.Sprintf("%X", material[:8]), "48 49 50 51", "0x30, 0x31"} {
				if strings.Contains(printed, form) {
					t.Errorf("%s of a %T prints key material", verb, value)
				}
			}
		}
	}
	if !strings.Contains(fmt.Sprint(k), k.ID()) {
		t.Errorf("a key prints as %v, without its id", k)
	}
}

func TestAKeyHasExactlyItsSize(t *testing.T) {
	for _, size := range []int{0, 1, checksum.KeySize - 1, checksum.KeySize + 1, 64} {
		if _, err := checksum.NewKey(make([]byte, size)); err == nil {
			t.Errorf("a key of %d bytes is taken", size)
		} else if !strings.Contains(err.Error(), fmt.Sprint(size)) {
			t.Errorf("the error does not say how many bytes there are: %v", err)
		}
	}
}

func TestAKeyKeepsItsMaterialWhenTheCallerReusesTheBuffer(t *testing.T) {
	material := bytes.Repeat([]byte{7}, checksum.KeySize)
	k, err := checksum.NewKey(material)
	if err != nil {
		t.Fatal(err)
	}
	selection := selected(t, checksum.DefaultPolicy(), envFrom(message))
	before := checksum.NewRing(k).Digest(namespace, selection, text("a", "1"))
	clear(material)
	if after := checksum.NewRing(k).Digest(namespace, selection, text("a", "1")); after != before {
		t.Error("clearing the caller's buffer changed the key")
	}
}
