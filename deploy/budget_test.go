package deploy

import (
	"bytes"
	"strings"
	"testing"

	"github.com/configstamp/configstamp/internal/rollout"
)

// The chart takes what the flag takes, and hands it on as it is.
func TestTheBudgetOfTheChartIsThatOfTheFlag(t *testing.T) {
	t.Parallel()
	for text, right := range map[string]bool{
		"default": true, "1": true, "25": true, "1000000": true, "1%": true, "42%": true, "100%": true,
		"0": false, "-1": false, "2.5": false, "1000001": false, "0%": false, "101%": false, "2.5%": false, "%": false, "many": false,
	} {
		if err := new(rollout.Budget).Set(text); right != (err == nil) {
			t.Errorf("the flag reads %s: %v", text, err)
		}
		manifest, complaint := template(t, "rollouts.maxUnsettled="+text)
		switch {
		case right && !bytes.Contains(manifest, []byte(`"--max-unsettled=`+text+`"`)):
			t.Errorf("%s is handed on otherwise: %s", text, complaint)
		case !right && !strings.Contains(complaint, "/rollouts/maxUnsettled"):
			t.Errorf("the chart takes %s, or complains of something else: %q", text, complaint)
		}
	}
}
