package answer

import "github.com/configstamp/configstamp/internal/seen"

// History tells of the revisions of a workload.
type History struct {
	Namespace string `json:"namespace"`
	// Workload is kind/name.
	Workload string `json:"workload"`
	// Revisions are those that the cluster still keeps, newest first.
	Revisions []Revision `json:"revisions"`
	// Kept tells that the kind keeps revisions that can be read.
	Kept bool `json:"kept"`
}

// HistoryOf tells of the revisions of a workload.
func HistoryOf(f *seen.Fleet, w *seen.Workload) History {
	revisions := RevisionsOf(f, w)
	return History{Namespace: w.Namespace, Workload: w.Text(), Revisions: revisions, Kept: len(revisions) > 0}
}
