// Package order carries out what a person orders at the keyboard, with that person's rights:
// pause and unpause, resume, roll, undo and accept, restore. Each order says what it
// did (Did), and what overrules it. Package inspect sends the patches; package answer says
// where workloads stand.
//
// Nothing is guessed: what the webhook does not answer for is not sent. What was there
// before is kept: pause notes what it wrote beside it (checksum.PauseNote), and unpause takes
// back that and nothing else.
//
// Read it in this order: did.go (what became of one object), annotate.go (changing one
// annotation, and meanwhile nobody else's), note.go (what pause keeps), pause.go,
// overruled.go (what goes on in spite of a pause), resume.go, roll.go,
// undo.go, restore.go.
package order
