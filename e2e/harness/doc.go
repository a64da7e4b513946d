// Package harness runs configstamp as it runs in production, but for its Pods:
// real processes of the real binary, under the real service account, roles and
// webhook configuration of the chart, on a real Kubernetes control plane. It
// knows how to look, and has no opinion on what is right: that is what tests are
// for.
//
// Start reading at Run (run.go), which a TestMain makes; then Space (space.go),
// a test's own namespace and most of what a test says; then Product
// (product.go), for tests that stop, kill or hinder the processes. Between each
// process and the API server stands a proxy (package proxy), between the API
// server and the webhooks a balancer (balancer.go).
package harness
