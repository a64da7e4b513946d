// Package namespace holds what Namespaces say of the workloads in them: whether
// they are opted in, and their policy.
//
// It must not know what follows from it: the rules stand in package checksum.
// Start reading at store.go, then sink.go.
package namespace
