package reason

// Reason says why something rolls, waits, stops or is refused, or what came of it. It is an index into
// the table. The zero value is NoReason.
type Reason int

// EventType is the type of an event.
type EventType string

// The types of events. Silent is the type of a reason that has no event.
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
	// Forecasts is no metric: forecasts are not counted.
	Forecasts
	// Waiting is configstamp_waiting_workloads{reason} and configstamp_waiting_age_seconds{reason}.
	Waiting
)

// Row is one row of the table. Rows are written without the names of the columns, so that a missing
// column does not compile.
type Row struct {
	// Code is stable. It stands in logs, in texts that programs read, and in configstamp_admissions_total{reason}.
	Code string
	// Type is the type of the event, and Event its reason (CamelCase, stable).
	Type  EventType
	Event string
	// In are the metrics that count it, and Label is its label there, except in AdmissionReasons.
	In    Metrics
	Label string
	// Sentence is the text of an admission warning, with Values in braces, and the description of the
	// event in the documentation. Parse finds {source} and {key} at its beginning. The text of an event itself is made in package controller.
	Sentence string
}

func (r Reason) row() *Row { return &table[r] }

// String returns the code, "" for NoReason.
func (r Reason) String() string { return r.row().Code }

// EventType returns the type of the event, "" if there is none.
func (r Reason) EventType() string { return string(r.row().Type) }

// Event returns the reason of the event, "" if there is none.
func (r Reason) Event() string { return r.row().Event }

// Label returns the label in metrics, except in AdmissionReasons, where it is the code.
func (r Reason) Label() string { return r.row().Label }

// Rows returns the table, from the first reason after NoReason on.
func Rows() []Row { return append([]Row(nil), table[NoReason+1:]...) }

// Labels returns the labels of a metric, each once, in the order of the table.
func Labels(of Metrics) []string {
	var labels []string
	known := map[string]bool{}
	for _, row := range Rows() {
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
