package admission

import (
	"testing"
	"time"
)

// An admission that hangs by itself is a reason to start the webhook anew; how long
// the API server takes is none, as every question to it has a bound.
func TestEndpoint_ThatHangsIsUnhealthy(t *testing.T) {
	var h Endpoint[string]
	now := time.Now()
	if err := h.Healthy(now.Add(time.Hour)); err != nil {
		t.Errorf("without any admission: %v", err)
	}
	done := h.underWay.Begin(now)
	if err := h.Healthy(now.Add(time.Minute)); err != nil {
		t.Errorf("after a minute: %v", err)
	}
	if h.Healthy(now.Add(6*time.Minute)) == nil {
		t.Error("healthy, though an admission has hung for six minutes")
	}
	done()
	if err := h.Healthy(now.Add(time.Hour)); err != nil {
		t.Errorf("after its end: %v", err)
	}
}
