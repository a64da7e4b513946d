// Package checksum holds the rules of configstamp: what a pod template
// references, how the content of a source becomes a digest, where digests are
// written, and what an admission may change.
//
// It is pure. It knows no client, no clock, no log and no HTTP, and imports no
// other package of this module; the webhook and the controller both call it,
// so that a rule lives once.
//
// Read it in this order: source.go (the words), reference.go (what a template
// names), selection.go (which keys count), digest.go (the format v1, with its
// test vectors in testdata/vectors-v1.json), stamp.go (where it is written),
// verdict.go (is a record still true?), decide.go (the table of the design) and
// reasons.go (why it came to that, in every word that people and metrics see).
package checksum
