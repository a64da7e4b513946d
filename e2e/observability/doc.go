// Package observability checks that what tells operators how configstamp is fits
// together: the alerts and the dashboard of the chart ask for metrics that there
// are (docs/metrics.md, which cmd/configstamp checks against real processes), and
// each alert has tests and a page in docs/runbooks.md; and Alertmanager, set up as in
// examples/alertmanager, sends each of them to the chats of docs/chat.md.
//
// It is a module of its own for Prometheus' parser, Alertmanager's notifiers, and for
// promtool, which the Makefile builds from here.
package observability
