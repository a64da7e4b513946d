package main

import (
	"slices"
	"strings"
)

// didYouMean proposes the three names that are most like a wrong one, "" if none is.
func didYouMean(wrong string, names []string) string {
	type near struct {
		name string
		far  int
	}
	var all []near
	for _, name := range names {
		_, plain, found := strings.Cut(name, "/")
		if !found {
			plain = name
		}
		if far := distance(wrong, plain); far <= max(2, len(wrong)/3) {
			all = append(all, near{name, far})
		}
	}
	slices.SortStableFunc(all, func(a, b near) int { return a.far - b.far })
	var texts []string
	for _, one := range all[:min(3, len(all))] {
		texts = append(texts, one.name)
	}
	if len(texts) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(texts, ", ") + "?"
}

// distance is how many letters have to be put in, taken out or replaced to make one word of the other (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
