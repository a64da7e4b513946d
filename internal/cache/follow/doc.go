// Package follow watches resources, and keeps little of what comes. Its clients turn
// every object into something small at the moment of decoding, and its Store passes
// that on.
//
// An informer that drops what it does not need in a TransformFunc has seen the
// whole object first, and with WatchList sees some objects twice: a transform
// that hashes and then drops data hashes emptiness the second time. Here the
// decoder itself maps each received object exactly once, so that client-go's
// Reflector, its pager and its temporary store never see nor keep a big one.
//
// The package does not know what is kept of an object, nor why. Its callers say so by a
// function: packages source and namespace (protobuf) and the controller (either, and raw JSON
// of custom kinds).
//
// Start reading at client.go (how objects become small), then decode.go, stream.go, store.go (what
// a watch fills), listwatch.go (what it asks for), forget.go (what must not stay in
// memory) and progress.go (whether it is alive).
package follow
