// Package warning warns people who are about to edit or to delete a ConfigMap or a Secret of
// what that does: a validating webhook, which always allows.
//
// Read it in this order:
//   - handler.go answers reviews: in bounded time and memory, whatever comes.
//   - edit.go makes an edit of the two objects in a review. Content is hashed where it lies,
//     and wiped.
//   - sentence.go says what package impact foresees of it.
//   - metrics.go counts.
//
// The package never denies, asks the API server nothing, and does not know who foresees.
package warning
