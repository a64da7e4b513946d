// Package answer draws conclusions from what the plugin has read of a cluster (package
// seen): which workloads use a source, why one restarted or did not, what is under way.
// Each answer is a struct with json tags, which -o json and yaml print as it is; the
// command makes tables of it.
//
// It is pure: no client, no clock (now is an argument). The rules are those of package
// checksum; nothing is "in step" but by the webhook's own word.
//
// Read it in this order: users.go (who uses a source), revisions.go (why there is a
// revision), progress.go (where one workload stands), status.go (what is under way),
// why.go (all about one), impact.go (what an
// edit would do), wait.go (whether a change has come everywhere), doctor.go (what is
// wrong) with doctor_itself.go (with configstamp), doctor_pins.go (with what is asked about
// Pods), doctor_impact.go (with its warnings), doctor_users.go (with what people have
// written) and doctor_others.go (with what is beside it).
package answer
