package workload_test

import "testing"

func TestAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		kind, object string
		want         int32
	}{
		"a quarter more and a quarter fewer": {"Deployment", `{"spec":{"replicas":10,"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":"25%","maxUnavailable":"25%"}}}}`, 5},
		"one more, none fewer":               {"Deployment", `{"spec":{"replicas":10,"strategy":{"rollingUpdate":{"maxSurge":1,"maxUnavailable":0}}}}`, 1},
		"no more than there are":             {"Deployment", `{"spec":{"replicas":2,"strategy":{"rollingUpdate":{"maxSurge":10}}}}`, 2},
		"all by Recreate":                    {"Deployment", `{"spec":{"replicas":4,"strategy":{"type":"Recreate"}}}`, 4},
		"one after the other":                {"StatefulSet", `{"spec":{"replicas":4,"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"partition":0}}}}`, 1},
		"nodes":                              {"DaemonSet", `{"spec":{"updateStrategy":{"rollingUpdate":{"maxUnavailable":"10%"}}},"status":{"desiredNumberScheduled":50}}`, 5},
		"beside the type":                    {"CloneSet", `{"spec":{"replicas":10,"updateStrategy":{"type":"ReCreate","maxUnavailable":"20%"}}}`, 2},
		"nothing is said":                    {"Deployment", `{"spec":{}}`, 1},
		"no replicas":                        {"Deployment", `{"spec":{"replicas":0,"strategy":{"type":"Recreate"}}}`, 1},
		"what cannot be read":                {"Deployment", `{"spec":{"replicas":"many"}}`, 1},
		"a number that cannot be":            {"Deployment", `{"spec":{"replicas":3,"strategy":{"rollingUpdate":{"maxSurge":"many","maxUnavailable":-1}}}}`, 1},
	} {
		if got := kindOf(t, c.kind).AtOnce([]byte(c.object)); got != c.want {
			t.Errorf("%s: %d at once, want %d", name, got, c.want)
		}
	}
}
