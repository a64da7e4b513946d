// Package eventqueue writes the events of a process: slowly, the important ones
// first, and none silently lost.
//
// client-go's own recorder drops what it cannot queue, writes in no order, and
// forgets what waits when the process ends.
//
// Each event is a write to the API server, like a rollout, so they go out at a
// pace. Warnings go before Normal events. Events of one type and reason about one
// source or Namespace stand in one line. The namespaces take turns, and the lines of each:
// whoever comes last does not wait behind ten thousand others.
//
// A namespace whose event the API server does not take rests, and the others go on: somebody else's webhook on
// events may fail, or hang, in one namespace alone. While the API server takes no event at all, none is given up.
//
// Memory is bounded. If too many events wait, the namespace that has most of them loses its newest. What is lost, and what
// waits when the process ends and cannot be written in time, is counted in the log, by its reason. The report on a
// source (ConfigRollout) says what becomes of it in any case.
package eventqueue
