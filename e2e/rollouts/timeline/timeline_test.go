package timeline

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/yaml"

	"github.com/configstamp/configstamp/e2e/faults/judge"
)

// began is when the first event of each case is seen; version n is seen n seconds later.
var began = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return began.Add(time.Duration(seconds) * time.Second) }

// events reads what was seen: each document is of the version that it says.
func events(t *testing.T, documents ...string) Events {
	t.Helper()
	var all Events
	for _, document := range documents {
		object := &unstructured.Unstructured{}
		gone := strings.HasPrefix(document, "gone ")
		text, err := yaml.YAMLToJSON([]byte(strings.TrimPrefix(document, "gone ")))
		if err == nil {
			err = object.UnmarshalJSON(text)
		}
		if err != nil {
			t.Fatal(err, document)
		}
		object.SetNamespace("n")
		event := judge.Event{Version: judge.VersionOf(object), Type: watch.Modified, Object: object}
		if gone {
			event.Type = watch.Deleted
		}
		event.Seen = at(int(event.Version))
		all = append(all, event)
	}
	return all
}

func slice(version, name, service string, ready ...string) string {
	text := "{kind: EndpointSlice, metadata: {name: " + name + ", resourceVersion: '" + version + "', labels: {kubernetes.io/service-name: " + service + "}}, endpoints: ["
	for _, one := range ready {
		text += "{addresses: [x], conditions: {ready: " + one + "}},"
	}
	return text + "]}"
}

func TestUnserved(t *testing.T) {
	cases := map[string]struct {
		events []string
		want   []Span
	}{
		"one endpoint is always ready": {
			[]string{slice("1", "a", "web", "true", "true"), slice("6", "a", "web", "false", "true"), slice("7", "a", "web", "true", "false")}, nil,
		},
		"none is for a moment": {
			[]string{slice("1", "a", "web", "true"), slice("6", "a", "web", "false"), slice("8", "a", "web", "true")}, []Span{{"n/web", at(6), at(8)}},
		},
		"none is at the end": {
			[]string{slice("1", "a", "web", "true"), slice("6", "a", "web")}, []Span{{"n/web", at(6), time.Time{}}},
		},
		"none was before": {
			[]string{slice("1", "a", "web", "true"), slice("2", "a", "web", "false"), slice("3", "a", "web", "true"), slice("6", "a", "web", "true", "true")}, nil,
		},
		"none was then, and later": {
			[]string{slice("3", "a", "web", "false"), slice("8", "a", "web", "true")}, []Span{{"n/web", at(3), at(8)}},
		},
		"two slices make one Service": {
			[]string{slice("1", "a", "web", "true"), slice("5", "b", "web", "true"), slice("6", "a", "web", "false"), slice("7", "b", "web", "false")}, []Span{{"n/web", at(7), time.Time{}}},
		},
		"a slice is deleted": {
			[]string{slice("1", "a", "web", "true"), "gone " + slice("6", "a", "web", "true")}, []Span{{"n/web", at(6), time.Time{}}},
		},
		"what is not known of an endpoint counts as ready": {
			[]string{slice("1", "a", "web", "true"), slice("6", "a", "web", "null")}, nil,
		},
		"another Service": {
			[]string{slice("1", "a", "web", "true"), slice("2", "b", "db"), slice("6", "b", "db", "false")}, nil,
		},
		"there never was a slice": {nil, []Span{{"n/web", time.Time{}, time.Time{}}}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := events(t, c.events...).Unserved(4, "n/web"); !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// deployment of two replicas, by its version, stamp, generation, and what its status tells:
// the generation observed, updated and available replicas.
func deployment(version, name, stamp, generation, observed, updated, available string) string {
	return "{kind: Deployment, apiVersion: apps/v1, metadata: {name: " + name + ", uid: u" + name + ", resourceVersion: '" + version + "', generation: " + generation + "}, " +
		"spec: {replicas: 2, template: {metadata: {annotations: {configmap.configstamp.dev/c: " + stamp + "}}}}, " +
		"status: {observedGeneration: " + observed + ", replicas: 2, updatedReplicas: " + updated + ", availableReplicas: " + available + "}}"
}

func fresh(name string) string { return deployment("1", name, "v0", "1", "1", "2", "2") }

// rolling and rolled are a Deployment that begins to roll, and that has rolled.
func rolling(version, name string) string {
	return deployment(version, name, "v1", "2", "1", "2", "2")
}
func rolled(version, name string) string {
	return deployment(version, name, "v1", "2", "2", "2", "2")
}

func TestRolls(t *testing.T) {
	const soak = 3 * time.Second
	cases := map[string]struct {
		events []string
		want   Rolls
	}{
		"nothing rolls":   {[]string{fresh("a"), deployment("6", "a", "v0", "2", "2", "2", "2")}, nil},
		"it rolls before": {[]string{fresh("a"), rolling("2", "a"), rolled("6", "a")}, nil},
		"it rolls": {
			[]string{fresh("a"), rolling("6", "a"), deployment("7", "a", "v1", "2", "2", "1", "2"), rolled("8", "a")},
			Rolls{{Workload: "n/deployment/a", Version: 6, Begun: at(6), Done: at(8), Reports: true}},
		},
		"it is available, then not, then available": {
			[]string{fresh("a"), rolling("6", "a"), rolled("8", "a"), deployment("10", "a", "v1", "2", "2", "2", "1"), rolled("12", "a")},
			Rolls{{Workload: "n/deployment/a", Version: 6, Begun: at(6), Done: at(12), Reports: true}},
		},
		"it was available for long enough, and not any more": {
			[]string{fresh("a"), rolling("6", "a"), rolled("8", "a"), deployment("11", "a", "v1", "2", "2", "2", "1")},
			Rolls{{Workload: "n/deployment/a", Version: 6, Begun: at(6), Done: at(8), Reports: true}},
		},
		"it rolls again before it is done": {
			[]string{fresh("a"), rolling("6", "a"), deployment("7", "a", "v2", "3", "1", "1", "2"), deployment("9", "a", "v2", "3", "3", "2", "2")},
			Rolls{
				{Workload: "n/deployment/a", Version: 6, Begun: at(6), Over: at(7), Reports: true},
				{Workload: "n/deployment/a", Version: 7, Begun: at(7), Done: at(9), Reports: true},
			},
		},
		"it is deleted": {
			[]string{fresh("a"), rolling("6", "a"), "gone " + rolling("9", "a")},
			Rolls{{Workload: "n/deployment/a", Version: 6, Begun: at(6), Over: at(9), Reports: true}},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := events(t, c.events...).Rolls(4, soak); !slices.Equal(got, c.want) {
				t.Errorf("got\n%v\nwant\n%v", got, c.want)
			}
		})
	}
}

func TestHowManyRollAtOnce(t *testing.T) {
	const soak = 2 * time.Second
	four := []string{fresh("a"), fresh("b"), fresh("c"), fresh("d")}
	cases := map[string]struct {
		events    []string
		most      int
		tooEarly  []string
		unsettled int // at 12
	}{
		"one after the other": {
			[]string{rolling("6", "a"), rolled("7", "a"), rolling("9", "b"), rolled("10", "b")}, 1, nil, 0,
		},
		"the second while the first still soaks": {
			[]string{rolling("6", "a"), rolled("7", "a"), rolling("8", "b"), rolled("9", "b")}, 2, []string{"n/deployment/b"}, 0,
		},
		"one, then two": {
			[]string{rolling("6", "a"), rolled("7", "a"), rolling("9", "b"), rolling("10", "c"), rolled("11", "b")}, 2, nil, 2,
		},
		"one, then three": {
			[]string{rolling("6", "a"), rolled("7", "a"), rolling("9", "b"), rolling("10", "c"), rolling("11", "d")}, 3, []string{"n/deployment/d"}, 3,
		},
		"all at once": {
			[]string{rolling("6", "a"), rolling("7", "b"), rolling("8", "c")}, 3, []string{"n/deployment/b", "n/deployment/c"}, 3,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			rolls := events(t, append(slices.Clone(four), c.events...)...).Rolls(4, soak)
			if got := len(rolls.MostAtOnce(soak)); got != c.most {
				t.Errorf("%d at once, want %d:\n%v", got, c.most, rolls)
			}
			if got := len(rolls.Unsettled(at(12), soak)); got != c.unsettled {
				t.Errorf("%d unsettled, want %d:\n%v", got, c.unsettled, rolls)
			}
			var early []string
			for _, text := range rolls.TooEarly(soak) {
				name, _, _ := strings.Cut(text, " ")
				early = append(early, name)
			}
			if !slices.Equal(early, c.tooEarly) {
				t.Errorf("too early: %v, want %v", early, c.tooEarly)
			}
		})
	}
}

func replicaSet(version, name, of string) string {
	return "{kind: ReplicaSet, apiVersion: apps/v1, metadata: {name: " + name + ", uid: u" + name + ", resourceVersion: '" + version + "', " +
		"ownerReferences: [{kind: Deployment, name: " + of + ", controller: true}]}}"
}

func pod(version, name, of, restarts string) string {
	return "{kind: Pod, apiVersion: v1, metadata: {name: " + name + ", uid: u" + name + ", resourceVersion: '" + version + "', " +
		"ownerReferences: [{kind: ReplicaSet, name: " + of + ", controller: true}]}, status: {containerStatuses: [{restartCount: " + restarts + "}]}}"
}

func TestTouched(t *testing.T) {
	there := []string{fresh("a"), replicaSet("1", "a-1", "a"), pod("1", "a-1-x", "a-1", "0"), fresh("b"), replicaSet("1", "b-1", "b"), pod("1", "b-1-x", "b-1", "3")}
	cases := map[string]struct {
		event string
		want  string
	}{
		"a status":              {deployment("6", "a", "v0", "1", "1", "1", "1"), ""},
		"the status of a Pod":   {pod("6", "b-1-x", "b-1", "3"), ""},
		"a stamp":               {rolling("6", "a"), "generation 1, then 2; another spec"},
		"a stamp, long ago":     {rolling("3", "a"), ""},
		"a revision":            {replicaSet("6", "a-2", "a"), "ReplicaSet a-2 was made"},
		"a Pod":                 {pod("6", "a-1-y", "a-1", "0"), "Pod a-1-y was made"},
		"a restart":             {pod("6", "a-1-x", "a-1", "1"), "Pod a-1-x had 0 restarts, then 1"},
		"a Pod that is deleted": {"gone " + pod("6", "a-1-x", "a-1", "0"), "Pod a-1-x was deleted"},
		"a Pod of a ReplicaSet that was not seen yet": {pod("6", "a-2-x", "a-2", "0"), ""},
		"somebody else's Pod":                         {"{kind: Pod, metadata: {name: x, resourceVersion: '6'}}", ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			touched := events(t, append(slices.Clone(there), c.event)...).Touched(4)
			var got []string
			for _, what := range touched["n/deployment/a"] {
				what, _, _ = strings.Cut(what, " at ")
				got = append(got, what)
			}
			if strings.Join(got, "; ") != c.want || c.want == "" && len(touched) > 0 || len(touched) > 1 {
				t.Errorf("got %v, want %q", touched, c.want)
			}
		})
	}
}

func TestCrashed(t *testing.T) {
	there := []string{fresh("a"), replicaSet("1", "a-1", "a"), pod("1", "a-1-x", "a-1", "1"), replicaSet("5", "a-2", "a")}
	cases := map[string]struct {
		events []string
		pods   []string
		ok     bool
	}{
		"no new Pod":           {nil, nil, false},
		"one that runs":        {[]string{pod("6", "a-2-x", "a-2", "0")}, []string{"a-2-x"}, false},
		"one that crashes":     {[]string{pod("6", "a-2-x", "a-2", "0"), pod("7", "a-2-x", "a-2", "1")}, []string{"a-2-x"}, true},
		"one of two":           {[]string{pod("6", "a-2-x", "a-2", "1"), pod("7", "a-2-y", "a-2", "0")}, []string{"a-2-x", "a-2-y"}, false},
		"one that was deleted": {[]string{pod("6", "a-2-x", "a-2", "1"), "gone " + pod("7", "a-2-x", "a-2", "1")}, nil, false},
		"one of another's":     {[]string{pod("6", "b-1-x", "b-1", "1")}, nil, false},
		"an old one once more": {[]string{pod("6", "a-1-x", "a-1", "2")}, nil, false},
		"one that has ended":   {[]string{strings.Replace(pod("6", "a-2-x", "a-2", "0"), "restartCount", "state: {terminated: {exitCode: 1}}, restartCount", 1)}, []string{"a-2-x"}, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			pods, ok := events(t, append(slices.Clone(there), c.events...)...).Crashed(4, "n/deployment/a")
			if !slices.Equal(pods, c.pods) || ok != c.ok {
				t.Errorf("got %v, %v, want %v, %v", pods, ok, c.pods, c.ok)
			}
		})
	}
}

func TestCrashedUnderTheNameOfAnother(t *testing.T) {
	seen := events(t, pod("1", "a-1-x", "a-1", "0"), replicaSet("2", "a-1", "a"), "gone "+pod("6", "a-1-x", "a-1", "0"),
		strings.Replace(pod("7", "a-1-x", "a-1", "1"), "uid: ua", "uid: other", 1))
	if pods, ok := seen.Crashed(4, "n/deployment/a"); !ok || !slices.Equal(pods, []string{"a-1-x"}) {
		t.Errorf("got %v, %v, want a-1-x, true", pods, ok)
	}
}

func TestLives(t *testing.T) {
	seen := events(t, replicaSet("1", "a-1", "a"), pod("2", "a-1-x", "a-1", "0"), pod("6", "a-1-x", "a-1", "1"), pod("7", "a-1-x", "a-1", "1"), "gone "+pod("8", "a-1-x", "a-1", "1"))
	want := []string{"12:00:06.000 a-1-x: , ready: false, 1 restarts", "12:00:08.000 a-1-x: gone"}
	if got := seen.Lives(4, "n/deployment/a"); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestRolledOut(t *testing.T) {
	cases := map[string]struct {
		object         string
		rolled, report bool
	}{
		"Deployment":                  {rolled("1", "a"), true, true},
		"Deployment not observed yet": {rolling("1", "a"), false, true},
		"Deployment with an old Pod":  {strings.Replace(rolled("1", "a"), "replicas: 2, updated", "replicas: 3, updated", 1), false, true},
		"Deployment that is paused":   {strings.Replace(rolled("1", "a"), "spec: {", "spec: {paused: true, ", 1), true, false},
		"Deployment of nothing":       {"{kind: Deployment, metadata: {generation: 1}, spec: {replicas: 0}, status: {observedGeneration: 1}}", true, false},
		"StatefulSet": {"{kind: StatefulSet, metadata: {generation: 1}, spec: {replicas: 1}, " +
			"status: {observedGeneration: 1, replicas: 1, availableReplicas: 1, currentRevision: a, updateRevision: a}}", true, true},
		"StatefulSet in between": {"{kind: StatefulSet, metadata: {generation: 1}, spec: {replicas: 1}, " +
			"status: {observedGeneration: 1, replicas: 1, availableReplicas: 1, currentRevision: a, updateRevision: b}}", false, true},
		"StatefulSet on delete": {"{kind: StatefulSet, metadata: {generation: 1}, spec: {replicas: 1, updateStrategy: {type: OnDelete}}, " +
			"status: {observedGeneration: 1, replicas: 1, availableReplicas: 1, currentRevision: a, updateRevision: b}}", false, false},
		"DaemonSet": {"{kind: DaemonSet, metadata: {generation: 1}, " +
			"status: {observedGeneration: 1, desiredNumberScheduled: 2, updatedNumberScheduled: 2, numberAvailable: 2}}", true, true},
		"DaemonSet in between": {"{kind: DaemonSet, metadata: {generation: 1}, " +
			"status: {observedGeneration: 1, desiredNumberScheduled: 2, updatedNumberScheduled: 1, numberAvailable: 2}}", false, true},
		"DaemonSet on delete": {"{kind: DaemonSet, metadata: {generation: 1}, spec: {updateStrategy: {type: OnDelete}}, " +
			"status: {observedGeneration: 1, desiredNumberScheduled: 2, updatedNumberScheduled: 1, numberAvailable: 2}}", false, false},
		"ConfigMap": {"{kind: ConfigMap}", false, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			object := events(t, c.object)[0].Object
			if got := RolledOut(object); got != c.rolled {
				t.Errorf("rolled out: %v, want %v", got, c.rolled)
			}
			if got := Reports(object); got != c.report {
				t.Errorf("reports: %v, want %v", got, c.report)
			}
		})
	}
}
