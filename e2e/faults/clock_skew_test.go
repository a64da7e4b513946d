package faults_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/configstamp/configstamp/e2e/harness"
)

// One webhook's clock is ten minutes ahead, one controller's ten minutes behind,
// and each of the controllers leads for a while. (These two are built without the
// race detector; the other two have it.)
func TestClockSkew(t *testing.T) {
	long(t, "two builds with other clocks take minutes")
	product, trial := scenario(t)
	ahead, behind := filepath.Join(court.Run.Dir, "ahead"), filepath.Join(court.Run.Dir, "behind")
	harness.Must(t, court.Run.BuildSkewed(t.Context(), ahead, 10*time.Minute))
	harness.Must(t, court.Run.BuildSkewed(t.Context(), behind, -10*time.Minute))
	for process, binary := range map[*harness.Process]string{product.Webhooks[0]: ahead, product.Controllers[0]: behind} {
		process.Use(t, binary)
		harness.Must(t, process.Stop())
	}
	harness.Must(t, product.Start(t.Context()))
	stop := court.Supervise()
	defer stop()
	fanOut(t, trial, 8)
	for i := range 4 {
		harness.Must(t, trial.Set("configmap/c", value(2*i+1)))
		settled(t, trial)
		harness.Must(t, leader(t).Kill()) // the other one leads next
		harness.Must(t, trial.Set("configmap/c", value(2*i+2)))
		settled(t, trial)
	}
	trial.Judge(t, 2*soon)
}
