package rollout_test

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/configstamp/configstamp/internal/rollout"
)

var _ pflag.Value = (*rollout.Budget)(nil)

func TestBudget_Slots(t *testing.T) {
	for _, c := range []struct {
		text             string
		workloads, slots int
	}{
		{"default", 0, 10},
		{"default", 1_000, 10},
		{"default", 1_001, 11},
		{"default", 4_200, 42},
		{"default", 10_000, 100},
		{"default", 1_000_000, 100},
		{"25", 0, 25},
		{"25", 3, 25},
		{"25", 1_000_000, 25},
		{"1000000", 3, 1_000_000},
		{"2%", 0, 1},
		{"2%", 50, 1},
		{"2%", 51, 2},
		{"2%", 100_000, 2_000},
		{"100%", 7, 7},
	} {
		var b rollout.Budget
		if err := b.Set(c.text); err != nil {
			t.Fatalf("%s: %v", c.text, err)
		}
		if b.String() != c.text {
			t.Errorf("%s is written as %s", c.text, b)
		}
		if got := b.Slots(c.workloads); got != c.slots {
			t.Errorf("%s of %d workloads is %d slots, want %d", c.text, c.workloads, got, c.slots)
		}
	}
}

func TestBudget_ZeroIsTheDefault(t *testing.T) {
	if b := (rollout.Budget{}); b.String() != "default" || b.Slots(2_000) != 20 {
		t.Errorf("%s, %d", b, b.Slots(2_000))
	}
}

func TestBudget_BadTextSaysWhatIsRightAndChangesNothing(t *testing.T) {
	for _, text := range []string{"", "0", "-1", "+5", "1000001", "99999999999999999999", "2.5", "many", "off", " 25", "0%", "101%", "%", "-2%", "0.5%", "2 %", "2%%", "２%", "٣", "1e3", "2147483648", "Default"} {
		var b rollout.Budget
		if err := b.Set("3%"); err != nil {
			t.Fatal(err)
		}
		err := b.Set(text)
		if err == nil || b.String() != "3%" {
			t.Errorf("%q is read as %s, %v", text, b, err)
			continue
		}
		for _, right := range []string{"25", "2%", "default"} {
			if !strings.Contains(err.Error(), right) {
				t.Errorf("%q: %v: it does not name %s", text, err, right)
			}
		}
	}
}

func TestBudget_PerNamespace(t *testing.T) {
	for _, c := range []struct{ slots, set, want int }{
		{1, 0, 1},
		{2, 0, 1},
		{9, 0, 8},
		{10, 0, 9},
		{15, 0, 13},
		{100, 0, 90},
		{1_000_000, 0, 900_000},
		{10, 1, 1},
		{10, 10, 10},
		{10, 25, 10},
	} {
		if got := rollout.PerNamespace(c.slots, c.set); got != c.want {
			t.Errorf("%d of %d slots, where %d are set; want %d", got, c.slots, c.set, c.want)
		}
	}
}
