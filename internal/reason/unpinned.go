package reason

import "fmt"

// Why something is not pinned: the Text of NotPinned, if it is not the sentence of one of SnapshotResults.
const (
	UnpinnedUnnamed   = "the pod template does not name it"
	UnpinnedUnproven  = "its present content could not be verified in time"
	UnpinnedObserved  = "mode is observe"
	UnpinnedTooLarge  = "with its pins, the annotations would exceed 240 KiB"
	UnpinnedMisled    = "its pin named other content than its stamp; its next rollout pins it again"
	UnpinnedByRequest = "only this request says that it pins; its next rollout pins it"

	// Of a new Pod.
	UnpinnedLost     = "its snapshot is missing, is not configstamp's, or could not be read in time"
	UnpinnedOtherUse = "a container mounts a volume that serves another use, too"
	UnpinnedTooMany  = "containers read ConfigMaps in more than 100,000 places: mount volumes of many sources less often"
)

// UnpinnedVolumeUse is for a volume that a use serves which restart-on leaves out.
func UnpinnedVolumeUse(volume string) string {
	return "volume " + volume + " also serves a use that restart-on leaves out"
}

// UnpinnedVolumeKey is for a volume that shows an ignored key.
func UnpinnedVolumeKey(volume string) string {
	return "volume " + volume + " shows a key that ignore-keys leaves out"
}

// UnpinnedKey is for a container of a new Pod that requires a key which its snapshot does not have.
func UnpinnedKey(key string) string {
	return fmt.Sprintf("a container names key %q, which its snapshot does not have", key)
}
