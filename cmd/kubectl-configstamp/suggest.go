package main

import (
	"strings"

	"github.com/spf13/cobra"
)

// didYouMean proposes up to three names that are like a wrong one, "" if none is.
func didYouMean(wrong string, names []string) string {
	known := &cobra.Command{SuggestionsMinimumDistance: max(2, len(wrong)/3)} // cobra has the edit distance
	for _, name := range names {
		known.AddCommand(&cobra.Command{Use: name, Run: func(*cobra.Command, []string) {}})
	}
	like := known.SuggestionsFor(wrong)
	if len(like) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(like[:min(3, len(like))], ", ") + "?"
}
