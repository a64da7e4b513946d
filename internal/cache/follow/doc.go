// Package follow watches resources by client-go's Reflector, and keeps little of what comes. Its
// clients are client-go's own, over a small scheme. A Store makes each object small as the watch
// brings it, and page by page of a LIST, so that the Reflector never holds a whole one. What is
// kept of an object is the caller's choice.
//
// The Store is not a SharedIndexInformer, which does not tell the version of a list or the age of
// a bookmark, and holds every object once more.
//
// Start reading at store.go (what a watch fills), then client.go and codecs.go (how objects are
// decoded), listwatch.go (what is asked for), forget.go (what must not stay in memory) and
// progress.go (whether a watch is alive).
package follow
