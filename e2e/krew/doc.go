// Package krew checks what "make plugin-release" or "make release" has built of the plugin: every
// archive holds a program of its platform, this machine's one runs, the manifest keeps the rules
// of krew's index, and krew itself takes it and installs each platform.
//
// It is a module of its own for krew, which go tool builds from here.
package krew
