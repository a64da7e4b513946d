// Package archive makes snapshots, and reads them: Ensure before a name of one is written,
// Content before a Pod is given one. Mostly it answers from memory, as package source
// watches snapshots with all other ConfigMaps; what memory does not know is asked of the
// API server, a few at a time, and never taken for missing.
//
// The bytes of a source are here from one GET to one POST, and are kept nowhere. What a
// snapshot is, and when it may go, is package snapshot's. Start reading at archive.go, then
// make.go; calls.go has many share one answer.
//
// Rights needed: get and create on configmaps.
package archive
