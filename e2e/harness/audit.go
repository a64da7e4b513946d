package harness

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/configstamp/configstamp/e2e/rights"
)

// Account is configstamp's service account, as the API server calls it.
const Account = "system:serviceaccount:" + OwnNamespace + ":configstamp"

// Thief is the user agent of a test that uses the account's token itself (see
// Run.Stolen): what it asks for is not configstamp's doing.
const Thief = "stolen-token"

// Audit is what a run is to prove of the account's rights, by the audit log of
// its cluster: no request of configstamp is denied, each is allowed by a role of
// its own, and, where Whole is set, every right of these roles is used.
type Audit struct {
	// Whole: the tests of the package, all together, use every right.
	Whole bool
	// Except is what tests provoke on purpose.
	Except []rights.Exception
	// Spare are rights that only clusters need which the tests do not have.
	Spare []rights.Right
}

// checks is what a run without a log, or with a part of the tests, leaves out.
func (a *Audit) checks() int {
	if a.Whole {
		return 2
	}
	return 1
}

const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: Metadata, users: ["` + Account + `"]}
- {level: None}
`

func (r *Run) auditLog() string { return filepath.Join(r.Dir, "audit.log") }

// auditArgs are the arguments of the driver's "up" that have the cluster keep an
// audit log of configstamp's service account.
func (r *Run) auditArgs() ([]string, error) {
	policy := filepath.Join(r.Dir, "audit-policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return nil, fmt.Errorf("asking for an audit log: %w", err)
	}
	return []string{
		"--apiserver-arg=audit-policy-file=" + policy, "--apiserver-arg=audit-log-path=" + r.auditLog(),
		"--apiserver-arg=audit-log-maxsize=100000", // MB: one file
	}, nil
}

// audited says what is wrong with the account's rights; it is asked when the run
// has ended. passed: every test that ran did.
func (r *Run) audited(passed bool) (problems []string) {
	audit := r.wanted.Audit
	if r.cluster.borrowed {
		skipped(audit.checks(), "cluster "+r.cluster.name+" was there before this run, and keeps no audit log for it")
		return nil
	}
	verdict, err := r.judge(audit)
	if err != nil {
		return []string{err.Error()}
	}
	for _, q := range verdict.Denied {
		problems = append(problems, fmt.Sprintf("configstamp was denied: %s, asked by %s: give the right to it in deploy/chart/templates/rbac.yaml, or do not ask", q, q.Agent))
	}
	for _, q := range verdict.Beyond {
		problems = append(problems, fmt.Sprintf("configstamp was allowed what no role of the chart gives: %s, asked by %s: who else gives its account rights?", q, q.Agent))
	}
	verdict.Unused = slices.DeleteFunc(verdict.Unused, func(right rights.Right) bool { return slices.Contains(audit.Spare, right) })
	if !audit.Whole || len(verdict.Unused)+len(verdict.Idle) == 0 {
		return problems
	}
	if part := partial(); part != "" || !passed {
		if part == "" {
			part = "tests failed"
		}
		skipped(1, fmt.Sprintf("%s; the rest would have to need %d rights and %d exceptions: %v", part, len(verdict.Unused), len(verdict.Idle), verdict.Unused))
		return problems
	}
	for _, right := range verdict.Unused {
		problems = append(problems, fmt.Sprintf("nothing used the right of %s: take it out of deploy/chart/templates/rbac.yaml, or add the scenario that needs it", right))
	}
	for _, exception := range verdict.Idle {
		problems = append(problems, fmt.Sprintf("nothing needed this exception of the audit: %+v: take it out", exception))
	}
	return problems
}

func skipped(checks int, why string) {
	fmt.Printf("SKIPPED (%d checks): the service account's requests against its roles: %s\n", checks, why)
}

func (r *Run) judge(audit *Audit) (v rights.Verdict, err error) {
	var requests []rights.Request
	for _, each := range r.all() {
		log, err := os.ReadFile(each.auditLog())
		if err != nil {
			return v, fmt.Errorf("reading the audit log: %w", err)
		}
		more, err := rights.Read(bytes.NewReader(log), Account)
		if err != nil {
			return v, err
		}
		requests = append(requests, more...)
	}
	requests = slices.DeleteFunc(requests, func(q rights.Request) bool { return q.Agent == Thief })
	if len(requests) == 0 {
		return v, errors.New("the audit log knows of no request of " + Account)
	}
	objects, err := r.wanted.manifest()
	if err != nil {
		return v, err
	}
	granted, err := rights.Of(objects)
	if err != nil {
		return v, err
	}
	fmt.Printf("audit: %d requests of %s, %d rights of its roles\n", len(requests), Account, len(granted))
	return rights.Judge(granted, requests, audit.Except), nil
}

// partial says why not every test has run, "" when it has.
func partial() string {
	var parts []string
	for _, name := range []string{"test.run", "test.skip", "test.short"} {
		if value := flag.Lookup(name).Value.String(); value != "" && value != "false" {
			parts = append(parts, "-"+strings.TrimPrefix(name, "test.")+"="+value)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "a part of the tests ran, " + strings.Join(parts, " ")
}
