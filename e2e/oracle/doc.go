// Package oracle asks Kubernetes itself which ConfigMaps and Secrets a pod spec
// names, and holds checksum.References against the answer: the visitors of
// k8s.io/kubernetes/pkg/api/v1/pod are what its own node authorizer and
// admission plugins go by. It is a module of its own, because nothing else here
// may depend on k8s.io/kubernetes; of that, only small packages are compiled.
// And it compiles the expressions of the chart's policies, as an API server does, and
// asks the one that holds our account to what is opted in.
//
//	cd e2e/oracle && go test ./...
package oracle
