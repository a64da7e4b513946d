package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"runtime"
	"runtime/coverage"

	"github.com/configstamp/configstamp/e2e/cost"
)

// count counts what something takes, goroutines that it waits for included.
func count(do func()) (cost.Cost, error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := coverage.ClearCounters(); err != nil {
		return cost.Cost{}, err
	}
	do()
	runtime.ReadMemStats(&after)
	var counters bytes.Buffer
	if err := coverage.WriteCounters(&counters); err != nil {
		return cost.Cost{}, err
	}
	statements, err := sum(counters.Bytes())
	return cost.Cost{Statements: statements, Bytes: after.TotalAlloc - before.TotalAlloc}, err
}

var errForm = errors.New("the counters of this version of Go have another form: see internal/coverage/defs.go")

// sum adds counters up, as internal/coverage/encodecounter writes them: a header, a segment's
// header, texts, and of each function the number of its counters, two ids, and the counters.
func sum(text []byte) (all uint64, err error) {
	const header, segment, flavor, ofULEB128 = 32, 16, 24, 2
	if len(text) < header+segment || text[flavor] != ofULEB128 {
		return 0, errForm
	}
	functions := binary.LittleEndian.Uint64(text[header:])
	texts := int(binary.LittleEndian.Uint32(text[header+8:]) + binary.LittleEndian.Uint32(text[header+12:]))
	if text = text[header+segment:]; texts > len(text) {
		return 0, errForm
	}
	text = text[texts:]
	next := func() uint64 {
		n, took := binary.Uvarint(text)
		if took <= 0 {
			err, took = errForm, len(text)
		}
		text = text[took:]
		return n
	}
	for ; functions > 0 && err == nil; functions-- {
		counters := next()
		next()
		next()
		for ; counters > 0 && err == nil; counters-- {
			all += next()
		}
	}
	return all, err
}
