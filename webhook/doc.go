// Package webhook answers admission requests: an AdmissionReview comes in, a
// JSON patch of configstamp's own annotations goes out.
//
// Package internal/admission serves HTTPS, and knows nothing of what is decided. Here
// there are three rooms, in this order:
//   - review.go has it turn HTTP into one request, and back.
//   - handler.go looks at the request, has prove.go find out what its sources hold, and
//     asks checksum.Decide, which holds the rules; patch.go writes the answer, and
//     asked.go what a dry run that asks for it is told; again.go finds the revision that
//     a creation brings back; stripping.go finds clients that remove our stamps; metrics.go counts.
//   - with --pins, undo.go finds out whether a request goes back to a revision, and pins.go
//     has package archive make the snapshots that an answer names; pin.go is the entry for
//     new Pods, whose references get the names of snapshots.
//   - witness.go asks others than the request before anything is written, a snapshot or an
//     event: a review may be invented.
//
// The package never denies, and does not know that there is a controller. It writes nothing
// to the cluster but those snapshots.
package webhook
