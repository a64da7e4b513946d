// Command count answers, line by line, what reading objects costs: see package cost.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/configstamp/configstamp/e2e/cost"
)

func main() {
	questions, answers := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var q cost.Question
		if questions.Decode(&q) != nil {
			return
		}
		a := answer(q)
		if err := answers.Encode(a); err != nil {
			fmt.Fprintln(os.Stderr, "answering:", err)
			os.Exit(1)
		}
	}
}

func answer(q cost.Question) (a cost.Answer) {
	w, err := newWorld(q.Shape, q.N)
	if err != nil {
		return cost.Answer{Error: err.Error()}
	}
	for _, read := range w.reads() {
		took, err := count(read.do)
		if err != nil {
			return cost.Answer{Error: read.name + ": " + err.Error()}
		}
		a.Reads = append(a.Reads, cost.Read{Name: read.name, Size: read.size, Cost: took})
	}
	return a
}
