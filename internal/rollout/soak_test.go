package rollout

import (
	"testing"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/workload"
)

func TestMinReadySecondsIsALowerBoundOfEachSoak(t *testing.T) {
	p := NewPlanner(Limits{Step: 1, Soak: 10 * time.Second}, nil)
	for _, c := range []struct {
		minReady time.Duration
		setting  checksum.Soak
		want     time.Duration
	}{
		{0, checksum.Soak{}, 10 * time.Second},
		{25 * time.Second, checksum.Soak{}, 25 * time.Second},
		{25 * time.Second, checksum.Soak{Given: true}, 25 * time.Second},
		{25 * time.Second, checksum.Soak{For: time.Minute, Given: true}, time.Minute},
		{0, checksum.Soak{Given: true}, 0},
	} {
		f := &Facts{Status: workload.Status{MinReady: c.minReady}, Policy: checksum.Policy{Soak: c.setting}}
		if soak := p.soakOf(&track{facts: f}); soak != c.want {
			t.Errorf("minReadySeconds %s, setting %+v: soak %s, want %s", c.minReady, c.setting, soak, c.want)
		}
	}
}
