// Package servers proves that configstamp keeps its promises where there are several API
// servers, as behind the balancer of every cluster that is to survive one of them: one is
// behind the others, one answers nobody, one is killed, and connections move from one to
// the other.
//
// Three real API servers stand over one etcd. Each process of configstamp, and each person,
// has a balancer of its own before them (harness.Process.Front), so that a test can say who
// reaches which. The first server is never disturbed: the witness and the judge of package
// faults read from it, and Kubernetes' own controllers use it. Before the etcd of the others
// stands package behind, which makes them fall behind.
//
// In a cluster that outlives the run (CONFIGSTAMP_E2E_KEEP), the second and the third server
// are of no use: they ask etcd through the test binary.
//
// Start reading at servers_test.go, which has what befalls a server, and people_test.go,
// what people do meanwhile. Then there is a file for each promise: freshness_test.go,
// leases_test.go, and chaos_test.go, where all of it happens at once.
package servers
