// Package cost counts what the product does with one object of a tenant: statements that are
// executed, and bytes that are allocated. Both are the same in each run, however busy the machine
// is. Whoever may write a Deployment has it read by processes that everybody shares, so nothing
// may cost the square of its size.
//
// cost_test.go has the fuzz target: a few bytes say of what an object is made. The program
// ./count makes it, once small and once sixteen times as large, and gives it to all that reads
// objects. It is built with -cover: statements are counted by the counters of Go's coverage, and
// the product knows nothing of that.
//
// What one statement does without another statement is not seen: copying in place, comparing,
// hashing and searching texts, maps of the runtime, and all of packages that are not in Counted,
// such as JSON. What is copied into new memory is seen as bytes. Nor is seen what the controller
// does with what package checksum tells it, and what takes long for many objects.
package cost

// Counted are the packages whose statements are counted: ours, and those of Go in which a scan
// of a list hides behind one call. Without the program itself nothing would be counted.
const Counted = "github.com/configstamp/configstamp/checksum,github.com/configstamp/configstamp/webhook/...," +
	"github.com/configstamp/configstamp/internal/...,github.com/configstamp/configstamp/e2e/cost/count,slices,maps,strings,sort,path,regexp,regexp/syntax"

// Cost is what something takes.
type Cost struct{ Statements, Bytes uint64 }

// Read is one thing that reads an object, and what it took.
type Read struct {
	Name string
	Size int // bytes of all that was read
	Cost
}

// Shape says of what an object is made. Each byte is one of the dimensions.
type Shape [Dimensions]byte

// Of the lists there are, by the rest of five, none, one, two, some or many; lists may lie in
// lists. Of the others a byte chooses.
const (
	Containers = iota // a list, as what follows
	InitContainers
	Env // of each container
	EnvFrom
	Mounts
	Volumes
	Projected // sources of each volume
	Items
	Naming   // all name one source; some names; each its own
	Mounting // all mount one volume; each its own; in a chain, from either end; all volumes have one name
	Paths    // no subPath; one; each its own; an expression; the last names a key that is not there
	Optional
	PullSecrets // a list
	Foreign     // a list: annotations of others, and labels
	Stamps      // on record: none, true, untrue, under a lost key, under many, of keys that nobody knows
	Baseline    // the same
	Pins        // none, of present content, of other content
	Declined    // as Stamps
	Keys        // a list, of each source
	Exists      // sources: all, none, every second
	Says        // a source of itself: nothing, ignore-keys, many globs, no pin
	Settings    // of the workload: none, restart-on everything, startup, only, also, ignore by globs
	Dialect     // of Reloader: none, auto, expressions, exclude and search
	Nested      // a list: a field that nobody knows, so deep
	Managed     // a list: entries of managedFields
	Dimensions
)

// Question asks for the costs of an object of a shape. N is how many "many" are.
type Question struct {
	Shape Shape
	N     int
}

// Answer is that of ./count.
type Answer struct {
	Reads []Read
	Error string
}
