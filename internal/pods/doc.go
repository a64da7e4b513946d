// Package pods follows the pods of opted-in namespaces, and counts them by what they really
// have: the state that package podtruth gives each.
//
// It runs in the leader alone, and forgets all when that ends. Of each pod it keeps about a
// hundred bytes: what pods of one template have in common is kept once (group.go).
//
// All pods are watched by one watch, and those of other namespaces are dropped as they
// arrive, before anything of them is read. A watch per namespace would cost a request every
// few minutes and a connection for each of them, and have to begin and end with labels; the
// API server writes each event once, however many watch. In namespaced mode there is a watch
// per namespace, as of everything.
//
// It must not know what rolls, nor how a policy is found: it asks Options.Policy.
//
// Read it in this order: group.go (what is kept), condense.go (how it is read), room.go
// (what is known of all pods), judge.go (what holds for the pods of one template), count.go (what
// follows for each), watch.go, metrics.go.
package pods
