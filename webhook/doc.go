// Package webhook answers admission requests: an AdmissionReview comes in, a
// JSON patch of configstamp's own annotations goes out.
//
// Three rooms, in this order: server.go serves HTTPS and knows nothing of
// admission; review.go turns HTTP into one request and back; handler.go looks
// at the request and asks checksum.Decide, which holds the rules.
//
// The package never denies, never writes to the cluster, and does not know
// that there is a controller.
package webhook
