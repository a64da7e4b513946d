// Package reason holds the one table of reasons: why something rolls, waits, stops or is refused, and
// what came of it. Admission warnings, events, metrics, log lines and the documentation are made from it.
//
// A text that a program of ours reads has the form "configstamp: <code>: <sentence>", and Parse reads it.
// Programs compare codes; the sentence is for people, and may change with any release.
//
// It imports no other package of this module.
package reason
