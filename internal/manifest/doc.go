// Package manifest writes Helm's checksum annotations into manifests: files in, the same
// files out, with an annotation on each pod template for each source that stands in the
// same files. Every other byte stays as it is.
//
// It is for pipelines without a webhook. It never writes a stamp: no webhook would
// believe one. It is pure: no client, no clock, no file, no terminal.
//
// What the files say is read as kubectl reads it (sigs.k8s.io/yaml), what counts is
// decided by package checksum, and where things stand is told by the nodes of
// go.yaml.in/yaml/v3. So two libraries have read each document; and what was edited is
// read once more, and has to say what was meant. Otherwise there is an error, and no
// output.
//
// Read it in this order:
//   - annotate.go: files in, files out; which values, which warnings.
//   - split.go (documents of a file), document.go (what one says) and tree.go with
//     yaml.go and json.go (where it says that).
//   - object.go: the workloads and the sources in it.
//   - edit.go (where an annotation goes) and write.go (which bytes are written there).
package manifest
