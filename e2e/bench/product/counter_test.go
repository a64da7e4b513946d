package product

import (
	"net/url"
	"testing"

	"github.com/configstamp/configstamp/e2e/proxy"
)

func TestRequestsAreCountedByWhatTheyAsk(t *testing.T) {
	query := func(text string) url.Values {
		values, err := url.ParseQuery(text)
		if err != nil {
			t.Fatal(err)
		}
		return values
	}
	var c Counter
	for _, request := range []*proxy.Request{
		{Verb: "list", Resource: "secrets", Query: query("limit=50")},
		{Verb: "list", Resource: "secrets", Query: query("limit=500&continue=x")},
		{Verb: "list", Resource: "secrets", Query: query("limit=1")},
		{Verb: "watch", Resource: "secrets", Query: query("sendInitialEvents=true")},
		{Verb: "watch", Resource: "secrets", Query: query("resourceVersion=7")},
		{Verb: "patch", Resource: "deployments", Query: query("dryRun=All")},
		{Verb: "patch", Resource: "deployments"},
		{Verb: "patch", Resource: "deployments"},
		{Verb: "update", Resource: "leases"},
		{Verb: "watch", Resource: "secrets", Query: query("sendInitialEvents=true&fieldSelector=metadata.name%3Dkey")},
	} {
		c.see("controller", request)
	}
	counts := c.Counts()
	for what, want := range map[string]int{
		"controller list secrets": 1, "controller next-page secrets": 1, "controller version secrets": 1, "controller watch-list secrets": 1,
		"controller watch secrets": 1, "controller watch-one secrets": 1, "controller dry-run-patch deployments": 1, "controller patch deployments": 2, "controller update leases": 1,
	} {
		if counts[what] != want {
			t.Errorf("%s: %d, want %d; all: %s", what, counts[what], want, counts)
		}
	}
	if work := counts.Work(); work.Sum() != 5 {
		t.Errorf("work: %s", work)
	}
	c.see("controller", &proxy.Request{Verb: "delete", Resource: "pods"})
	if since := c.Since(counts); since.Sum() != 1 || since["controller delete pods"] != 1 {
		t.Errorf("since: %s", since)
	}
}
