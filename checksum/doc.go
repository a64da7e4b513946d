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
//     testdata/vectors-snapshot.json), pins.go says which of them Pods read, and declined.go
//     what an undo has sent back.
//   - What follows: verdict.go (is a record still true?), review.go (of all references),
//     carried.go (of what a template carries, whatever a policy says),
//     prove.go (what must be known for certain before anything is decided), suppose.go (what
//     would follow), request.go (what a decision depends on), decide.go (the table of the design), with stamping.go, pinning.go (what
//     can be pinned, and why not) and undo.go, and finding.go (a reason, and the source that it is
//     about). The reasons and their texts are in internal/reason.
package checksum
