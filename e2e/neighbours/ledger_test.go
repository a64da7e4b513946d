package neighbours

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/configstamp/configstamp/e2e/harness"
)

// request is a line of the audit log.
type request struct {
	Agent                                             string // the program, without its version
	Verb, Resource, Subresource, Namespace, Name, URI string
	Code                                              int
	At                                                time.Time
}

func (q request) object() string { return q.Resource + "/" + q.Namespace + "/" + q.Name }

// writes tells that something may be stored: a dry run only asks.
func (q request) writes() bool {
	return !q.dry() && (q.Verb == "create" || q.Verb == "update" || q.Verb == "patch" || q.Verb == "delete")
}

func (q request) dry() bool { return strings.Contains(q.URI, "dryRun=All") }

// requests are those of a time on that are wanted. A request is written down when it was answered.
func requests(t *testing.T, since time.Time, wanted func(request) bool) (found []request) {
	t.Helper()
	file, err := os.Open(auditLog)
	harness.Must(t, err)
	defer file.Close()
	lines := bufio.NewReaderSize(file, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return found // the last line may be half written
		}
		var event struct {
			Verb, UserAgent, RequestURI string
			ObjectRef                   struct{ Resource, Namespace, Name, Subresource string }
			ResponseStatus              struct{ Code int }
			RequestReceivedTimestamp    time.Time
		}
		harness.Must(t, json.Unmarshal(line, &event))
		agent, _, _ := strings.Cut(event.UserAgent, " ")
		name, _, _ := strings.Cut(agent, "/")
		q := request{
			Agent: path.Base(name), Verb: event.Verb, URI: event.RequestURI, Code: event.ResponseStatus.Code, At: event.RequestReceivedTimestamp,
			Resource: event.ObjectRef.Resource, Subresource: event.ObjectRef.Subresource, Namespace: event.ObjectRef.Namespace, Name: event.ObjectRef.Name,
		}
		if !q.At.Before(since) && wanted(q) {
			found = append(found, q)
		}
	}
}

// tally counts requests by who asked, for what, most first: "12 patch deployments by configstamp".
func tally(all []request) (lines []string) {
	counts := map[string]int{}
	for _, q := range all {
		what := q.Resource
		if q.Subresource != "" {
			what += "/" + q.Subresource
		}
		if q.dry() {
			what += " (dry run)"
		}
		counts[fmt.Sprintf("%s %s by %s", q.Verb, what, q.Agent)]++
	}
	for what, n := range counts {
		lines = append(lines, fmt.Sprintf("%5d %s", n, what))
	}
	slices.SortFunc(lines, func(a, b string) int { return cmp.Compare(b, a) })
	return lines
}

// busiest is the object that one agent wrote to most often, and how often.
func busiest(all []request, agent string) (object string, n int) {
	counts := map[string]int{}
	for _, q := range all {
		if q.Agent == agent && q.writes() {
			counts[q.object()]++
		}
	}
	for o, times := range counts {
		if times > n || times == n && o < object {
			object, n = o, times
		}
	}
	return object, n
}
