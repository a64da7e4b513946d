// Package admission is what our two webhooks share: HTTPS, and the admission protocol
// (admission.k8s.io/v1). It does not know what is decided.
//
//   - server.go serves HTTPS; bounds.go and crowd.go bound what it holds, and log.go is its log.
//   - clients.go demands certificates of clients.
//   - endpoint.go answers reviews: review.go reads and writes them; carve.go cuts the objects out of a body.
package admission
