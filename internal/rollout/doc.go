// Package rollout decides when workloads roll. It is pure: it has no client, goroutine,
// lock or clock. Facts go in, orders come out; the controller sees, asks and does.
//
// A change is one source going to one content. It rolls one workload first, then twice as
// many each time those have become healthy, and halts when one fails. All changes together
// keep within a budget of rollouts that are under way.
//
// Begin here:
//   - Why does this workload wait? waits.go: Look answers, by mayWait (something that it requires
//     is missing; a setting holds it; it has rolled too often: pace.go; its sources have yet to
//     rest: settle.go) and by why (a halt, which stops in opened.go and announce in cycle.go find;
//     or its turn: admits in turns.go says what for).
//   - Who is next? turns.go, from grantAll on: precedes orders the changes, compare the workloads
//     of one, and admits says who may.
//   - How does one do that rolls? watch.go, and judge in health.go.
//   - What happens each time? cycle.go.
//
// The words:
//   - A workload waits for its turn. When that comes, its patch is sent. What it takes then it
//     is on trial with, until it has proven it, failed with it, or cannot tell.
//   - Who has failed, or has not shown yet how it does when its source is edited, carries over:
//     it takes the next content first, and holds the room of it.
//   - The room of a change is how many may have begun. A slot is one rollout of the budget.
//   - A track is what is remembered of one workload. A part is what it has to do with one
//     open change.
//   - Copies are the changes of a replicated ConfigMap, which roll in common steps.
//
// No state is counted from one cycle to the next: each counts them anew.
//
// The rest:
//   - What goes in and comes out: facts.go, orders.go, limits.go and budget.go.
//   - What is remembered: state.go (the states, and of a workload), opened.go (of a change, what
//     is counted, what halts it, and its copies); copies.go tells by what copies are known.
//   - What it is told: planner.go (edits, deletions), patches.go, and observe.go (what a look shows).
//   - When pods are listed, and what they and nodes show: looks.go, pods.go, nodes.go.
//   - Why a workload has failed, in Kubernetes' own words, and what to do about it: failure.go.
//   - What the report asks: report.go.
//   - Rare cases: fall.go (the first ten), returns.go (content that comes again), back.go
//     (workloads that go back to their former content), infer.go (what others
//     rolled, or who led before).
//
// It knows package checksum and the types of package workload alone. It never speaks to
// the API server, tells people nothing and counts no metrics.
package rollout
