package podtruth

import (
	"fmt"
	"strings"
)

// Why is the reason of an Answer.
type Why int

// The reasons.
const (
	UsesNothing Why = iota
	SeenToStart
	StartedAfter
	StampTrue
	FilesRefreshed
	StartedBefore
	NodeSilent
	NotRunning
	SourceMissing
	StartedAtOnce
	StartedSoon
	WrittenSince
	Withdrawn
	RestartedUnseen
	StartUnseen
	Unstamped
	RemovedUnseen
	Undated
	Refreshing
	Remade
	Snapshot
	Uncompared
)

// sentences are the reasons for people. {container} and {source} are put in.
var sentences = [...]string{ //nolint:gochecknoglobals // a table
	UsesNothing:     "it uses no source that counts",
	SeenToStart:     "container {container} was seen to start with what {source} holds now",
	StartedAfter:    "container {container} started after the last edit of {source}",
	StampTrue:       "its stamp of {source} is up to date, and container {container} started after the last edit",
	FilesRefreshed:  "its node has refreshed the files of {source} in container {container} since the last edit",
	StartedBefore:   "container {container} started before {source} was edited, and the pod's stamp is of other content",
	NodeSilent:      "its node does not answer",
	NotRunning:      "no container that uses a source runs",
	SourceMissing:   "{source}, or a key that the pod needs, is missing",
	StartedAtOnce:   "container {container} started within seconds of an edit of {source}: its node may have read what was there before",
	StartedSoon:     "container {container} started about when {source} was edited: its node may have read either content",
	WrittenSince:    "{source} was written after container {container} started, and what was written then is not known",
	Withdrawn:       "container {container} started while {source} held other content, which was taken back since",
	RestartedUnseen: "container {container} has restarted, and what {source} held then is not known",
	StartUnseen:     "container {container} started between two edits of {source}, and which content its node had read is not known",
	Unstamped:       "no stamp of {source} can be compared, and container {container} started before the last edit",
	RemovedUnseen:   "a key may have been removed from {source} since container {container} started: managedFields would not show that",
	Undated:         "when {source} was last edited is not known",
	Refreshing:      "its node refreshes the files of {source} in container {container} within two and a half minutes of an edit",
	Snapshot:        "container {container} reads a snapshot of {source}, made when the pod's template was stamped",
	Uncompared:      "container {container} reads a snapshot of {source}, and the pod's stamp cannot be compared with what {source} holds now",
	Remade:          "{source} was deleted and created again after the pod was created",
}

// Sentence is the reason for people, without a full stop.
func (a Answer) Sentence() string {
	return strings.NewReplacer("{container}", a.Container, "{source}", a.Source).Replace(sentences[a.Why])
}

// String is for tests and logs.
func (a Answer) String() string { return fmt.Sprintf("%s: %s", a.State, a.Sentence()) }
