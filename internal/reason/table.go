package reason

// The reasons. Each has its row in the table below.
const (
	NoReason Reason = iota // nothing is wrong

	// Findings of an admission.
	MissingSource
	MissingKey
	UnreadableSetting
	ObserveMode
	TooLarge
	NotProvenFresh
	LostRecord
	InvalidName
	ForeignStamps
	Unreferenced
	NoDigestKey
	SourcesUnknown
	Panicked
	PinUnreadable
	NotPinned
	UndoUnknown
	UndoLost
	UndoMixed
	NotUndone
	DeclinedKept
	DeclinedCleared
	AgainUnknown
	NotWatched
	BaselineUnreadable

	// Results of an admission, beside TooLarge and NotProvenFresh.
	Stamped
	UndoTaken
	Kept
	Restored
	Recorded
	OnHold
	Observed
	Returned
	OptedOut
	Owned
	NotServed
	TemplateUnreadable
	AdmissionFailed

	// Why a workload with changed sources waits, beside MissingSource,
	// MissingKey, UnreadableSetting, ObserveMode and TooLarge.
	Paused
	OutsideWindow
	TooSoon
	Paced
	Turn
	Halted
	Blocked
	Retry

	// Results of a re-admission, beside OptedOut, TooLarge and Blocked.
	Done
	WebhookAway
	Refused
	NoAnswer
	Gone

	// Results of making a snapshot. After the first two there is one.
	SnapshotMade
	SnapshotKnown
	SnapshotQuota
	SnapshotForbidden
	SnapshotForeign
	SnapshotOvertaken
	SnapshotFailed

	// Results of a rollout.
	Healthy
	RolloutFailed
	CannotTell

	// Further events on workloads.
	ConfigChanged
	ConfigMaybeStale
	PodsRunWithdrawnContent
	PodsUnseen
	RecordingBlocked
	ChecksumsTakenAway
	SourceGone
	StaleByUndo
	ContentReturned
	ReturnDidNotHelp
	ReturnImpossible
	SnapshotLost
	SnapshotsUnverified
	// Events on sources.
	NotASnapshot
	MadeAnew
	ResumeAhead
	ChangeHalted
	ChangeResumed
	ChangeRolledOut
	ChangeIncomplete
	SourceChangesOften
	// Events on configstamp's own namespace.
	ReportRefused

	// Why an edit of a source does not roll a workload that uses it, in forecasts alone.
	KeyNotUsed
	UseLeftOut
	SourceLeftOut
	NotMounted
	AfterCreation

	reasonCount
)

// table is never changed.
var table = [reasonCount]Row{ //nolint:gochecknoglobals // never changed
	MissingSource:     {"missing-source", Warning, "RolloutHeld", AdmissionReasons | Waiting, "missing", "{source} does not exist: pods cannot start without it; it will be stamped once it exists"},
	MissingKey:        {"missing-key", Warning, "RolloutHeld", AdmissionReasons | Waiting, "missing", "{source} key {key} does not exist: pods cannot start without it; it will be stamped once it exists"},
	UnreadableSetting: {"unreadable-setting", Warning, "PolicyUnreadable", AdmissionReasons | Waiting, "unreadable", "{source}: {fault}; nothing {user}restarts until it is fixed"},
	ObserveMode:       {"observe-mode", Normal, "WouldRollOut", AdmissionReasons | Waiting, "observe", "mode is observe: checksums are out of date, and nothing restarts"},
	TooLarge: {"annotations-too-large", Warning, "AnnotationsTooLarge", AdmissionReasons | AdmissionOutcomes | Waiting | ReadmissionResults, "oversize",
		"checksums left out: with them the annotations would exceed 240 KiB, and the API server takes 256 KiB; remove large annotations"},
	NotProvenFresh: {"not-proven-fresh", Silent, "", AdmissionReasons | AdmissionOutcomes, "deferred",
		"the present content of the sources could not be read in time; the controller checks this workload again"},
	LostRecord: {"lost-record", Warning, "ChecksumLost", AdmissionReasons, "",
		"{source}: the recorded checksum can no longer be compared; the present content is recorded, and nothing restarts"},
	InvalidName: {"invalid-name", Silent, "", AdmissionReasons, "", "no object in this namespace can have the name {name}; this reference to a {kind} is not stamped"},
	ForeignStamps: {"foreign-stamps", Silent, "", AdmissionReasons, "",
		"the configstamp annotations in this request are ignored: the content of a ConfigMap or Secret is not versioned; to undo a change, put the old content back"},
	Unreferenced:   {"unreferenced-name", Silent, "", AdmissionReasons, "", "{source} is named by configstamp.dev/only, but nothing here references it; correct or remove the name"},
	NoDigestKey:    {"no-key", Silent, "", AdmissionReasons, "", "there is no digest key yet; the object is admitted unchanged"},
	SourcesUnknown: {"sources-unknown", Silent, "", AdmissionReasons, "", "the caches are not filled yet, and the sources could not be read from the API server; the object is admitted unchanged"},
	Panicked:       {"panic", Silent, "", AdmissionReasons, "", "internal error: admitted without checksums; the controller will add them"},

	PinUnreadable: {"pin-unreadable", Warning, "SettingHasNoEffect", AdmissionReasons, "", "{source}: {fault}; nothing is pinned until it is fixed, and nothing is held by it"},
	NotPinned: {"not-pinned", Warning, "NotPinned", AdmissionReasons, "",
		"{source}: not pinned{uses}: {why}; containers that start later read its content at that time"},
	UndoUnknown: {"undo-unknown", Silent, "", AdmissionReasons, "",
		"it could not be determined in time whether this is an undo, or whether its snapshots exist; checksums on record stay, and the controller checks again"},
	UndoLost: {"undo-lost", Silent, "", AdmissionReasons, "",
		"the template goes back, but its ConfigMaps do not: a snapshot that this revision names is missing, or is not configstamp's"},
	UndoMixed: {"undo-mixed", Silent, "", AdmissionReasons, "",
		"this is not an undo: it carries the checksums of an older revision, but its template differs, perhaps because of another webhook; the present content is used"},
	NotUndone:    {"not-undone", Silent, "", AdmissionReasons, "", "{source} does not go back: it was not pinned at that revision"},
	DeclinedKept: {"declined-kept", Silent, "", AdmissionReasons, "", "{source} stays at older content: an undo declined its present content; to take it, run kubectl configstamp accept"},
	DeclinedCleared: {"declined-cleared", Normal, "DeclinedCleared", AdmissionReasons, "",
		"{source}: the workload takes its present content, which an undo had declined: the template changed, and may need it"},

	AgainUnknown: {"again-unknown", Silent, "", AdmissionReasons, "",
		"configstamp could not check in time whether pods of this template already run, as after a deletion with --cascade=orphan: it is stamped with the present content, and such pods may be replaced; if this repeats, the webhook's log says why"},

	NotWatched: {"not-watched", Silent, "", AdmissionReasons, "",
		"{source} has Helm's own type helm.sh/release.v1: it is not stamped, and its edits restart nothing; give it another type"},

	BaselineUnreadable: {"baseline-unreadable", Silent, "", AdmissionReasons, "", "{fault}; the annotation is dropped"},

	Stamped: {"stamped", Silent, "", AdmissionOutcomes, "stamped", "every reference was stamped with its present checksum"},
	UndoTaken: {"undo", Normal, "UndoTaken", AdmissionReasons | AdmissionOutcomes, "undone",
		"{source} is back at its earlier content{when}; its present content is declined until it changes again, or until kubectl configstamp accept"},
	Kept:     {"kept", Silent, "", AdmissionOutcomes, "kept", "configstamp changed nothing"},
	Restored: {"restored", Silent, "", AdmissionOutcomes, "restored", "a client left out or changed configstamp's annotations; they were put back"},
	Recorded: {"recorded", Normal, "ConfigRecorded", AdmissionOutcomes, "recorded", "the present content was recorded; nothing restarts"},
	OnHold:   {"held", Silent, "", AdmissionOutcomes, "held", "it would roll, but something required is missing, a setting cannot be read, or an undo declined the content"},
	Observed: {"observed", Silent, "", AdmissionOutcomes, "observed", "it would roll, but its mode is observe"},
	Returned: {"returned", Silent, "", AdmissionReasons | AdmissionOutcomes, "returned",
		"{source} is back at its earlier content{when}, because the workload has failed with its present content, which is declined until it changes again, or until kubectl configstamp accept"},
	OptedOut:  {"opted-out", Silent, "", AdmissionOutcomes | ReadmissionResults, "opted-out", "the workload is not opted in: its label or its Namespace says so"},
	Owned:     {"owned", Silent, "", AdmissionOutcomes, "owned", "a controller owns the object and makes it from its own template"},
	NotServed: {"not-served", Silent, "", AdmissionOutcomes, "not-served", "configstamp does not stamp objects of this kind, or not in this operation"},
	TemplateUnreadable: {"template-unreadable", Warning, "TemplateUnreadable", AdmissionOutcomes, "unreadable",
		"the pod template cannot be read: it does not have the form of its kind, or it selects too many keys"},
	AdmissionFailed: {"admission-failed", Silent, "", AdmissionOutcomes, "failed", "admitted without checksums: {fault}"},

	Paused:        {"pause", Normal, "RolloutHeld", Waiting, "pause", "configstamp.dev/pause holds it"},
	OutsideWindow: {"window", Normal, "RolloutHeld", Waiting, "window", "configstamp.dev/window holds it until the window opens"},
	TooSoon:       {"min-interval", Normal, "RolloutHeld", Waiting, "min-interval", "configstamp.dev/min-interval has not passed since the newest revision became current"},
	Paced:         {"pace", Warning, "RolloutsSlowedDown", Waiting, "pace", "it rolled too often in ten minutes, because its sources keep changing"},
	Turn:          {"turn", Normal, "RolloutHeld", Waiting, "turn", "it waits for its turn: a change rolls out in steps, and slots are limited"},
	Halted:        {"halted", Warning, "RolloutHalted", Waiting, "halted", "another workload has failed with the same change, or an undo of that workload declined the content"},
	Blocked:       {"blocked", Warning, "RolloutBlocked", Waiting | ReadmissionResults, "blocked", "another webhook would change the workload together with configstamp's patch; the event names the fields"},
	Retry:         {"retry", Warning, "ReadmissionFailing", Waiting, "retry", "the API server refuses the patch, or the webhook does not answer; configstamp keeps trying"},

	Done:        {"done", Silent, "", ReadmissionResults, "done", "the checksums of the workload are up to date"},
	WebhookAway: {"webhook-away", Silent, "", ReadmissionResults, "away", "the webhook was not called, or had older content"},
	Refused:     {"refused", Silent, "", ReadmissionResults, "refused", "the API server, or an admission webhook or policy, refused it"},
	NoAnswer:    {"no-answer", Silent, "", ReadmissionResults, "failed", "the API server gave no answer"},
	Gone:        {"gone", Silent, "", ReadmissionResults, "gone", "the workload was deleted in the meantime"},

	SnapshotMade:      {"snapshot-made", Silent, "", SnapshotResults, "made", "the snapshot was made"},
	SnapshotKnown:     {"snapshot-known", Silent, "", SnapshotResults, "known", "the snapshot already existed"},
	SnapshotQuota:     {"snapshot-quota", Silent, "", SnapshotResults, "quota", "the quota of its namespace has no room for a snapshot"},
	SnapshotForbidden: {"snapshot-forbidden", Silent, "", SnapshotResults, "forbidden", "configstamp may not make a snapshot in its namespace"},
	SnapshotForeign:   {"snapshot-foreign", Silent, "", SnapshotResults, "foreign", "another ConfigMap has the name of its snapshot"},
	SnapshotOvertaken: {"snapshot-overtaken", Silent, "", SnapshotResults, "changed", "its content changed while its snapshot was made"},
	SnapshotFailed:    {"snapshot-failed", Silent, "", SnapshotResults, "failed", "its snapshot could not be made in time"},

	Healthy:       {"healthy", Silent, "", RolloutResults, "healthy", "the workload rolled out, and stayed healthy"},
	RolloutFailed: {"rollout-failed", Warning, "RolloutFailed", RolloutResults, "failed", "the workload did not become healthy; the event says why"},
	CannotTell:    {"unreported", Silent, "", RolloutResults, "unreported", "the status of the workload does not show whether its rollout is healthy"},

	ConfigChanged: {"config-changed", Normal, "ConfigChanged", 0, "", "content changed, and the workload rolls; or it was stamped, and the event says why no pod restarts"},
	ConfigMaybeStale: {"config-maybe-stale", Warning, "ConfigMaybeStale", AdmissionReasons, "",
		"{source} was recorded, but pods may have started before its last edit; if in doubt, restart them: kubectl rollout restart"},
	PodsRunWithdrawnContent: {"pods-run-withdrawn-content", Warning, "PodsRunWithdrawnContent", 0, "", "an edit was reverted, and some pods started in between; the event names them"},
	PodsUnseen:              {"pods-unseen", Warning, "PodsUnseen", 0, "", "the pods of the workload cannot be listed; only its status shows whether it is healthy"},
	RecordingBlocked:        {"recording-blocked", Warning, "RecordingBlocked", Waiting, "blocked", "nothing is recorded: another webhook would change the workload together with configstamp's patch"},
	ChecksumsTakenAway:      {"checksums-taken-away", Warning, "ChecksumsTakenAway", 0, "", "without keepStamps: a client keeps removing configstamp's annotations; the event names it"},
	SourceGone: {"source-gone", Warning, "SourceMissing", Waiting, "missing",
		"a ConfigMap, Secret or key that the workload requires was deleted: no new pod can start until it exists again"},

	StaleByUndo: {"stale-by-undo", Warning, "StaleByUndo", 0, "",
		"an undo has kept the workload on older content for a long time; to take the present content, run kubectl configstamp accept"},
	ContentReturned: {"content-returned", Normal, "ContentReturned", 0, "",
		"it failed with a change, went back to its former content by itself, and is well; the change stays halted until the source changes again, or until kubectl configstamp accept"},
	ReturnDidNotHelp: {"return-did-not-help", Warning, "ReturnDidNotHelp", 0, "",
		"it failed with a change, and is not well with its former content either: look for another cause"},
	ReturnImpossible: {"return-impossible", Warning, "ReturnImpossible", AdmissionReasons, "",
		"configstamp.dev/on-failure is return, but it does not go back to its former content: {why}"},
	SnapshotLost: {"snapshot-lost", Warning, "SnapshotLost", 0, "",
		"a snapshot that pods use was deleted, and its source holds other content now, which new pods read"},
	SnapshotsUnverified: {"snapshots-unverified", Warning, "SnapshotsUnverified", 0, "",
		"snapshots in the Namespace were made under a lost key, or in another cluster; they are not used"},

	NotASnapshot: {"not-a-snapshot", Warning, "SnapshotLabelMisplaced", 0, "",
		"it has the label of a snapshot, but its name or its annotation configstamp.dev/of does not fit; it is an ordinary ConfigMap, and the label should go"},
	MadeAnew: {"made-anew", Warning, "ImmutableMadeAnew", 0, "",
		"it was immutable, and was deleted and created again with other content: a node on which a pod uses it never reads it again, so new pods there start with the old content; give the new one another name, or first scale the workloads that use it to zero"},
	ResumeAhead: {"resume-ahead", Warning, "PolicyUnreadable", 0, "",
		"configstamp.dev/resume: {time}: this time was more than a minute in the future when it was written, so it releases nothing; write the present time, as $(date -u +%FT%TZ) gives it"},
	ChangeHalted:    {"change-halted", Warning, "ChangeHalted", 0, "", "a workload has failed with the change, or an undo declined the content; the event says why, and how to continue"},
	ChangeResumed:   {"change-resumed", Normal, "ChangeResumed", 0, "", "nothing halts the change any more"},
	ChangeRolledOut: {"change-rolled-out", Normal, "ChangeRolledOut", 0, "", "all workloads of the change that may roll have rolled out"},
	ChangeIncomplete: {"change-incomplete", Warning, "ChangeIncomplete", 0, "",
		"the change has ended, but workloads that were down before have failed with it"},
	ReportRefused: {"report-refused", Warning, "ReportRefused", 0, "",
		"ConfigRollouts cannot be written: a right is missing, or a quota or policy refuses them; nothing else depends on them"},
	SourceChangesOften: {"source-changes-often", Warning, "SourceChangesOften", 0, "", "the source keeps changing"},

	KeyNotUsed:    {"key-not-used", Silent, "", Forecasts, "", "it uses none of the keys that change"},
	UseLeftOut:    {"use-left-out", Silent, "", Forecasts, "", "configstamp.dev/restart-on leaves out the way in which it uses them"},
	SourceLeftOut: {"source-left-out", Silent, "", Forecasts, "", "configstamp.dev/only, ignore or ignore-keys leaves it out"},
	NotMounted:    {"not-mounted", Silent, "", Forecasts, "", "no container mounts its volume, so no node reads it"},
	AfterCreation: {"after-creation", Silent, "", Forecasts, "", "only objects that are created later start with it"},
}
