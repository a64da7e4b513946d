// Package condense makes REST clients that turn every object into something
// small at the moment of decoding.
//
// An informer that drops what it does not need in a TransformFunc has seen the
// whole object first, and with WatchList sees some objects twice: a transform
// that hashes and then drops data hashes emptiness the second time. Here the
// decoder itself maps each received object exactly once, so that client-go's
// Reflector, its pager and its temporary store never see nor keep a big one.
//
// It knows neither what is kept of an object nor why: the callers, package
// source (typed objects, protobuf) and package workload (raw JSON), say so by
// a function. Start reading at client.go, then decode.go.
package follow
