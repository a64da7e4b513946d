// Package draw makes pictures of a graph of workloads and the sources that they use: as
// SVG, and as text for Graphviz (DOT) and Mermaid, which have a layout of their own.
//
// It is pure, and knows package answer alone. Colours never stand alone: a state that is
// not "done" is written beside the name, and what is out of date has a thicker line.
//
// Read it in this order: picture.go (names and colours, common to all), layout.go (what
// stands where in the SVG), svg.go, dot.go, mermaid.go.
package draw
