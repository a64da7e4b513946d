// Package seen holds what the kubectl plugin has read of a cluster: types, and what
// they say of themselves by the rules of package checksum. Package inspect fills them,
// package answer draws its conclusions from them.
//
// It is pure: no client, no clock. It must not hold the content of a source; of
// ConfigMaps and Secrets there is metadata alone.
//
// Read it in this order: settings.go (what counts in the whole cluster, and who is
// served), workload.go (workloads, pods, revisions, events), source.go (sources, and who
// wrote them), outcome.go (what the webhook has said), fleet.go (all of that together), gap.go (what
// could not be looked at), checkup.go (what doctor looks at beside a fleet).
package seen
