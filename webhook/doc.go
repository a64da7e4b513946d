// Package webhook answers admission requests: an AdmissionReview comes in, a
// JSON patch of configstamp's own annotations goes out.
//
// Package internal/admission serves HTTPS, reads reviews, and catches panics; it knows nothing of what is
// decided. Here a request goes through a pipe, in this order:
//   - handler.go: Handler, and admit, which is the pipe.
//   - request.go reads the request once. Nothing changes it afterwards.
//   - facts.go gathers what the decision depends on: whether the workload is served, its policy, what it
//     references. prove.go finds out what that holds now, and orphan.go finds the revision that a creation adopts
//     again; if the process pins, package pins finds the one that an undo brings back.
//   - checksum.Decide is the table. Package pins has the snapshots made that it names; one that cannot be made
//     is a fact, and it is decided again.
//   - effects.go: the events that a decision causes. stored.go reads the stored workload before any side effect,
//     a snapshot or an event: a review may be forged.
//   - patch.go: the answer; asked.go adds the outcome for a dry run that asks for it. metrics.go counts.
//
// The package never denies, and does not import the controller. It writes snapshots and events to the cluster, and
// nothing else.
package webhook
