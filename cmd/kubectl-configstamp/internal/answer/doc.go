// Package answer draws conclusions from what the plugin has read of a cluster (package
// seen): which workloads use a source, what an edit would do, what is wrong.
// Each answer is a struct with json tags, which -o json and yaml print as it is; the
// command makes tables of it.
//
// It is pure: no client, no clock (now is an argument). The rules are those of package
// checksum; nothing is "in step" but by the webhook's own word.
//
// Read it in this order: users.go (who uses a source), impact.go (what an
// edit would do), doctor.go (what is
// wrong) with doctor_itself.go (with configstamp), doctor_pins.go (with what is asked about
// Pods), doctor_impact.go (with its warnings), doctor_users.go (with what people have
// written) and doctor_others.go (with what is beside it).
package answer
