// Package observability checks that what tells operators how configstamp is fits
// together: the alerts and the dashboard of the chart ask for metrics that there
// are (docs/reference.md, which cmd/configstamp checks against real processes), and
// each alert has tests and a section in docs/troubleshooting.md.
//
// It is a module of its own for Prometheus' parser, and for promtool, which the
// Makefile builds from here.
package observability
