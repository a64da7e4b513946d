// Package rollout decides when workloads roll. It is pure: it has no client, goroutine,
// lock or clock. Facts go in, orders come out; the controller sees, asks and does.
//
// A change is one source going to one content. It rolls one workload first, then twice as
// many each time those have become healthy, and halts when one fails. All changes together
// keep within a budget of rollouts that are under way.
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
// Nothing is counted from one cycle to the next: each counts everything anew.
//
// It knows package checksum and the types of package workload alone. It never speaks to
// the API server, tells people nothing and counts no metrics.
//
// Read it in this order:
//   - What goes in and comes out: facts.go, orders.go, limits.go and budget.go.
//   - What is remembered: state.go (the states, and of a workload), opened.go (of a change, and
//     what is counted), copies.go.
//   - What it is told: planner.go (edits, looks, deletions), patches.go, and observe.go (what a
//     look shows).
//   - What a workload waits for: await.go, with settle.go (its sources rest), pace.go (it has not
//     rolled too often) and nodes.go (it lacks nothing but nodes).
//   - What is done each time: cycle.go. It gives the turns.
//   - How does it do? watch.go, with health.go, looks.go and pods.go (when pods are listed, and
//     what they show), fall.go (the first ten) and infer.go (what others rolled, or who led before).
package rollout
