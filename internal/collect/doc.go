// Package collect takes snapshots away that nothing names any more, and makes those again
// that somebody deleted too early. It is for the leader.
//
// What names a snapshot is found in the text of all objects of a namespace that start Pods,
// or may again: read by LIST, and only where something may have to go (names.go). What may
// go is package snapshot's to say. When in doubt it stays. Start reading at collect.go, then
// look.go; metrics.go counts.
//
// Rights needed: list on pods, replicasets, controllerrevisions, deployments, statefulsets,
// daemonsets, jobs and cronjobs; get, create and delete on configmaps.
package collect
