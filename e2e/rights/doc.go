// Package rights compares what configstamp may do, by its roles, with what it
// did, by the API server's audit log: both ways, and with no opinion on either.
// It is pure; package harness has the cluster keep the log.
package rights
