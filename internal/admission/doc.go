// Package admission serves our three webhooks by HTTPS and the admission protocol (admission.k8s.io/v1). It does not
// depend on their decisions.
//
//   - server.go serves HTTPS; bounds.go and connections.go bound what it holds, and log.go is its log.
//   - clients.go demands certificates of clients.
//   - endpoint.go answers reviews: review.go reads and writes them; carve.go cuts the objects out of a body.
package admission
