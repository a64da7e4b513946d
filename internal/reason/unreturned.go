package reason

// Why a workload that has failed does not go back to its former content: the Text of ReturnImpossible.
const (
	UnreturnedSecret     = "a Secret changed too, and the former content may need its old value"
	UnreturnedKind       = "only Deployments, StatefulSets and DaemonSets do"
	UnreturnedUnpinned   = "its pins name no snapshot of the former content"
	UnreturnedDeclined   = "its former content was declined"
	UnreturnedTemplate   = "no revision has the same template with other content"
	UnreturnedLost       = "the snapshot of its former content is missing, or is not configstamp's"
	UnreturnedReplicated = "the ConfigMap is replicated over several namespaces"
	UnreturnedUnproven   = "its former content was not proven either"
	UnreturnedDown       = "no pod is known to have been available before"
	UnreturnedLate       = "it failed longer than --rollout-deadline ago: the setting or the end of a pause came too late, or the API server or a webhook refused it or gave no answer"
	UnreturnedTried      = "it has gone back from this content before"
)
