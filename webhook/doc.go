// Package webhook answers admission requests: an AdmissionReview comes in, a
// JSON patch of configstamp's own annotations goes out.
//
// There are three rooms, in this order:
//   - server.go serves HTTPS and knows nothing of admission; log.go is its log.
//   - review.go turns HTTP into one request and back; carve.go cuts the objects out of
//     the body.
//   - handler.go looks at the request, has prove.go find out what its sources hold, and
//     asks checksum.Decide, which holds the rules; patch.go writes the answer, and
//     asked.go what a dry run that asks for it is told;
//     stripping.go finds clients that remove our stamps; metrics.go counts.
//
// The package never denies, never writes to the cluster, and does not know
// that there is a controller.
package webhook
