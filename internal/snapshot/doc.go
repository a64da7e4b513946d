// Package snapshot says what a snapshot is: an immutable ConfigMap that holds all that
// another one held at one moment, under a name that follows from what it holds. It says
// also which snapshots nobody needs any more (collect.go).
//
// It is pure: no client, no clock. What names look like is package checksum's. Start
// reading at snapshot.go.
package snapshot
