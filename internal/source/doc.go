// Package source holds what is in the cluster's ConfigMaps and Secrets now, and
// what the pods of SecretProviderClasses report of them: per source its version and
// the checksums of its keys, never the content.
//
// Store follows the cluster by watches and answers from memory, seldom more
// than some milliseconds late. Checker proves by consistent reads what the API
// server holds at this very moment, which is what keeps "one deploy, one
// rollout" true. Content of a source exists here only until it is
// hashed (condense.go).
//
// It must not know what a workload is, which keys count, or what a digest is
// for: that is package checksum's. Start reading at record.go, then condense.go,
// store.go, sink.go, check.go, version.go and share.go (one read for all requests
// together); provided.go is what SecretProviderClasses need. Snapshots (package snapshot) are
// no sources, and lie in caches of their own (snapshots.go).
//
// Rights needed: get, list and watch on configmaps and secrets, in the whole
// cluster or in the namespaces given; list and watch on
// secretproviderclasspodstatuses.
package source
