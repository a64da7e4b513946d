package order

import (
	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/inspect"
	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/seen"
)

// Manager is the field manager of what an order writes. Its name does not begin with
// "kubectl": Flux takes over what such managers wrote on an object that it applies, and
// removes what is not in Git, so that a pause would end at its next sync.
const Manager = "configstamp-order"

// DryRun is the flag --dry-run of kubectl.
type DryRun string

// What --dry-run can say.
const (
	// None carries the order out.
	None DryRun = "none"
	// Client sends nothing that could change anything.
	Client DryRun = "client"
	// Server has the API server do all but store it.
	Server DryRun = "server"
)

// Result is what became of one object, in one word.
type Result string

// The results.
const (
	Paused    Result = "paused"
	Unpaused  Result = "unpaused"
	Resumed   Result = "resumed"
	Rolled    Result = "rolled"
	Restarted Result = "restarted"
	Undone    Result = "undone"
	Accepted  Result = "accepted"
	Restored  Result = "restored"
	Purged    Result = "deleted"
	// Unchanged needed nothing, Kept is left as it is though the order was about it.
	Unchanged Result = "unchanged"
	Kept      Result = "kept"
	// Refused could not be done.
	Refused Result = "refused"
)

// Changed reports whether something was written, or would have been.
func (r Result) Changed() bool {
	switch r {
	case Paused, Unpaused, Resumed, Rolled, Restarted, Undone, Accepted, Restored, Purged:
		return true
	case Unchanged, Kept, Refused:
	}
	return false
}

// Did is what became of one object.
type Did struct {
	// Namespace is "" of a Namespace itself.
	Namespace string `json:"namespace,omitempty"`
	// Object is kind/name.
	Object string `json:"object"`
	Result Result `json:"result"`
	// Why says more in words.
	Why string `json:"why,omitempty"`
	// Wrote is the annotation that was written, "" where there is none: key=value, or key-.
	Wrote string `json:"wrote,omitempty"`
	// MayBeUndoneBy is who has the same annotation in what it applies, "" for nobody.
	MayBeUndoneBy string `json:"mayBeUndoneBy,omitempty"`
	// Overrules is what the order overrules, Overruled what goes on in spite of it.
	Overrules []string `json:"overrules,omitempty"`
	Overruled []string `json:"overruled,omitempty"`
	// Warnings are those of the API server's webhooks.
	Warnings []string `json:"warnings,omitempty"`
	// Next is what to do, or to look at.
	Next string `json:"next,omitempty"`
	// Quiet tells of what is unchanged that it is one of many, and no news.
	Quiet bool `json:"-"`
	// Dry tells that it was a dry run: nothing was changed.
	Dry bool `json:"dryRun,omitempty"`
}

// Orders carries orders out in one cluster.
type Orders struct {
	Cluster  *inspect.Cluster
	Settings *seen.Settings
	DryRun   DryRun
}

// did begins the answer about an object.
func (o *Orders) did(of inspect.Target) Did {
	return Did{Namespace: of.Namespace(), Object: of.String(), Dry: o.DryRun != None}
}

func (d Did) with(result Result, why string) Did {
	d.Result, d.Why = result, why
	return d
}

// refused is the answer where the API server has refused something.
func (d Did) refused(of inspect.Target, err error) Did {
	return d.with(Refused, inspect.Refusal(of, err))
}
