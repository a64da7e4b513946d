// Package rollout decides when workloads roll. It is pure: it has no client, goroutine,
// lock or clock. Facts go in, orders come out; the controller sees, asks and does.
//
// A change is one source going from one content to another. It rolls one workload
// first, twice as many each time they have become healthy, and halts when one fails.
// All changes together keep within a budget of rollouts that are under way.
//
// It knows package checksum and the types of package workload alone. It never speaks to
// the API server, tells nobody anything and counts no metrics.
package rollout
