package controller

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

// A line of the log says which workload it is about, in JSON too: slog does not
// ask a value how it wants to be logged.
func TestLogLinesNameTheWorkload(t *testing.T) {
	var text bytes.Buffer
	ctx := klog.NewContext(t.Context(), logr.FromSlogHandler(slog.NewJSONHandler(&text, nil)))
	c := newCluster(t)
	c.write("c", map[string]string{"k": "old"})
	d := c.deploy("d", "c")
	h := newHouse(t, c)
	for range 2 { // a recording, then a roll
		if _, err := h.sync(ctx, d); err != nil {
			t.Fatal(err)
		}
		h.cluster.write("c", map[string]string{"k": "new"})
		h.rest()
	}
	for _, message := range []string{"Recorded", "Rolling out"} {
		if want := `"msg":"` + message + `","workload":"deployments.apps shop/d"`; !strings.Contains(text.String(), want) {
			t.Errorf("there is no %s in\n%s", want, text.String())
		}
	}
}
