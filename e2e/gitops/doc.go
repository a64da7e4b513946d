// Package gitops asks the libraries by which Argo CD and Flux compare a cluster with
// Git what they see of configstamp's annotations, on a real API server. It is a
// module of its own, because these bring Kubernetes and more with them.
//
// tools_test.go holds the tools, each as its project uses its library;
// gitops_test.go what none of them may see, and what all of them must; pins_test.go the
// same of workloads that pin, and pruning_test.go that nobody prunes a snapshot.
package gitops
