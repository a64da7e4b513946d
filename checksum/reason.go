package checksum

// Reason says why something rolls, waits, stops or is refused, or what came of it.
// It is an index into the one table of reasons, which admission warnings, events,
// metrics, log lines and the documentation are made from.
type Reason int

// EventType is the type of an event.
type EventType string

// The types of events; Silent is the type of a reason that no event tells of.
const (
	Silent  EventType = ""
	Normal  EventType = "Normal"
	Warning EventType = "Warning"
)

// Metrics is a set of metrics that have a reason as a label.
type Metrics uint16

// The metrics.
const (
	// AdmissionReasons is configstamp_admissions_total{reason}. Its label is the code.
	AdmissionReasons Metrics = 1 << iota
	// AdmissionOutcomes is configstamp_admissions_total{outcome}.
	AdmissionOutcomes
	// ReadmissionResults is configstamp_readmissions_total{result}.
	ReadmissionResults
	// RolloutResults is configstamp_rollouts_total{result}.
	RolloutResults
	// SnapshotResults is configstamp_snapshots_made_total{result}.
	SnapshotResults
	// Forecasts is no metric: nothing counts what a forecast tells.
	Forecasts
	// Waiting is configstamp_waiting_workloads{reason} and configstamp_waiting_age_seconds{reason}.
	Waiting
)

// Row is one row of the table. Rows are written without the names of the columns,
// so that a row that lacks one does not compile.
type Row struct {
	// Code is stable: logs have it, and configstamp_admissions_total{reason}.
	Code string
	// Type is the type of the event, and Event its reason (CamelCase, stable).
	Type  EventType
	Event string
	// In are the metrics that count it, and Label is what they call it, but for
	// AdmissionReasons.
	In    Metrics
	Label string
	// Sentence is what an admission warning says (words in braces are of a Finding), and what the
	// pages say of the event. What an event itself says stands in package controller: reportVerdict, say.
	Sentence string
}

// row is the row of a reason.
func (r Reason) row() *Row { return &reasons[r] }

// String is the code, "" for NoReason.
func (r Reason) String() string { return r.row().Code }

// EventType is the type of the event that tells of the reason.
func (r Reason) EventType() string { return string(r.row().Type) }

// Event is the reason of that event; "": there is none.
func (r Reason) Event() string { return r.row().Event }

// Label is what metrics call the reason, but for AdmissionReasons, which have the
// code.
func (r Reason) Label() string { return r.row().Label }

// Reasons is the table.
func Reasons() []Row { return append([]Row(nil), reasons[NoReason+1:]...) }

// Labels are the labels of a metric, each once, in the order of the table.
func Labels(of Metrics) []string {
	var labels []string
	known := map[string]bool{}
	for _, row := range Reasons() {
		label := row.Label
		if of == AdmissionReasons {
			label = row.Code
		}
		if row.In&of != 0 && !known[label] {
			known[label] = true
			labels = append(labels, label)
		}
	}
	return labels
}
