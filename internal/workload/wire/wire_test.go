package wire_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/configstamp/configstamp/internal/workload/wire"
)

func TestAnObjectIsTakenOutOfItsEnvelope(t *testing.T) {
	unknown := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: "Secret"}, Raw: []byte("hunter2"), ContentEncoding: "x", ContentType: "y"}
	data, err := unknown.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	data = append([]byte("k8s\x00"), data...)
	o, err := wire.Open(data)
	if err != nil || o.APIVersion != "v1" || o.Kind != "Secret" || string(o.Message) != "hunter2" {
		t.Errorf("%+v, %v", o, err)
	}
	if at := strings.Index(string(data), "hunter2"); &o.Message[0] != &data[at] {
		t.Error("the message was copied")
	}
	for cut := range data {
		if o, err := wire.Open(data[:cut]); err == nil && string(o.Message) == "hunter2" && cut < strings.Index(string(data), "hunter2")+7 {
			t.Errorf("of %d bytes %+v is read", cut, o)
		}
	}
	if _, err := wire.Open([]byte(`{"kind":"Secret"}`)); err == nil {
		t.Error("JSON is opened")
	}
}

func TestFieldsComeInOrderAndOthersArePassedOver(t *testing.T) {
	cases := map[string]struct{ message, want string }{
		"nothing":                    {"", ""},
		"two, one of them twice":     {"\x0a\x01a\x12\x01b\x0a\x01c", "1=a 2=b 1=c "},
		"an empty one":               {"\x0a\x00", "1= "},
		"a number between":           {"\x08\x96\x01\x0a\x01a", "1=a "},
		"fixed ones":                 {"\x0d1234\x0a\x01a\x0912345678", "1=a "},
		"a group":                    {"\x0b\x12\x01x\x0c\x0a\x01a", "1=a "},
		"a length beyond the end":    {"\x0a\x01a\x12\x05b", "1=a error"},
		"a number that does not end": {"\x08\xff", "error"},
		"a length that does not fit": {"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "error"},
		"the end of no group":        {"\x0c", "error"},
		"a group that does not end":  {"\x0b\x12\x01x", "error"},
		"a field of the number 0":    {"\x02\x01a", "error"},
		"a kind that does not exist": {"\x0f", "error"},
		"what was found is an error": {"\x0a\x04stop\x0a\x01a", "1=stop error"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			err := wire.Each([]byte(c.message), func(number int, value []byte) error {
				got += fmt.Sprintf("%d=%s ", number, value)
				if string(value) == "stop" {
					return errors.New("stop")
				}
				return nil
			})
			if err != nil {
				got += "error"
			}
			if got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
