// Package checksum holds the rules of configstamp: what a pod template
// references, how the content of a source becomes a digest, where digests are
// written, whose workloads are served, and what an admission may change.
//
// It is pure: no client, no clock, no log and no HTTP. Of this module it imports only
// internal/reason. The webhook and the controller both call it, so that a rule lives once.
//
// Read it in this order:
//   - What there is: source.go (the words), reference.go (what a template names),
//     joined.go (what is kept of that).
//   - What counts: served.go (whose workloads), policy.go, with setting.go (the
//     annotations), pattern.go and window.go (their values) and dialect.go (those of
//     other products), and selection.go (which keys).
//   - What is written: digest.go (the format v1, with its test vectors in
//     testdata/vectors-v1.json), digestcache.go (nothing is hashed twice), stamp.go
//     (where it stands). snapshot.go names the copies of sources (vectors in
//     testdata/vectors-snapshot.json), pins.go has those that Pods read, and declined.go
//     the content that an undo declined.
//   - What follows: verdict.go (is a record still true?), review.go (all sources of a workload, each judged once),
//     carried.go (the true stamps of a template, whatever the policy), prove.go (content that must be proven before a
//     decision), suppose.go (what would follow), request.go (the inputs of a decision), decide.go (the table of the
//     design), with stamping.go, pinning.go (what can be pinned, and why not) and undo.go, and finding.go (a reason, and
//     its source). The reasons and their texts are in internal/reason.
package checksum
