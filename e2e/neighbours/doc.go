// Package neighbours runs the controllers that people have beside configstamp, each as the binary
// that its project publishes as a Go module, on a real API server with real containers: Argo CD,
// Flux, Argo Rollouts, trust-manager and others. It counts what each asks for, of which object, and
// how often pods roll: nobody is to fight, no change is to be lost, and no rollout is to come twice.
// Two of them have webhooks that change the same objects as ours: Istio Pods, Kyverno templates.
//
// A neighbour is a nested module that has no code: its go.mod names the program as a tool, and its
// go.sum what it is built from (argocd/, flux/, …). main_test.go makes the cluster, program_test.go
// builds and runs a neighbour, ledger_test.go counts requests by the API server's audit log,
// repository_test.go is the Git that some of them read. Then there is a file for each neighbour.
//
// Three are not published as modules. migration_test.go takes the programs of Reloader and wave by
// flags, -reloader=PATH and -wave=PATH, and helm_test.go that of Flux's helm-controller, by
// -helm-controller=PATH. Each is skipped, loudly, without its flag.
//
// argocd/ has a little code: the cache that Argo CD wants, and a test that asks Argo CD's own library
// what it makes of deploy/gitops/argocd-health.yaml.
package neighbours
