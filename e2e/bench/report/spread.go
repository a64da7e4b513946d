package report

import (
	"math"
	"slices"
	"time"
)

// Spread is what many measurements of one thing come to. Of a single one all
// its numbers are the same.
type Spread struct {
	N    int     `json:"n"`
	Min  float64 `json:"min"`
	P50  float64 `json:"p50"`
	P99  float64 `json:"p99"`
	Max  float64 `json:"max"`
	Mean float64 `json:"mean"`
}

// Of takes the spread of values, which may be in any order and stay as they are.
func Of(values ...float64) Spread {
	if len(values) == 0 {
		return Spread{}
	}
	sorted := slices.Sorted(slices.Values(values))
	sum := 0.0
	for _, value := range sorted {
		sum += value
	}
	return Spread{
		N: len(sorted), Min: sorted[0], Max: sorted[len(sorted)-1], Mean: sum / float64(len(sorted)),
		P50: percentile(sorted, 50), P99: percentile(sorted, 99),
	}
}

// percentile is the nearest rank: the smallest of the sorted values that at
// least p percent of them do not exceed. It is always a value that was measured.
func percentile(sorted []float64, p float64) float64 {
	rank := int(math.Ceil(p / 100 * float64(len(sorted))))
	return sorted[max(rank, 1)-1]
}

// Milliseconds makes numbers of durations.
func Milliseconds(durations []time.Duration) []float64 {
	values := make([]float64, len(durations))
	for i, duration := range durations {
		values[i] = float64(duration) / float64(time.Millisecond)
	}
	return values
}

// Differences is a[i]-b[i], for measurements that were made in pairs.
func Differences(a, b []float64) []float64 {
	values := make([]float64, min(len(a), len(b)))
	for i := range values {
		values[i] = a[i] - b[i]
	}
	return values
}

// stat reads one number of the spread by its name.
func (s Spread) stat(name Stat) float64 {
	switch name {
	case P99:
		return s.P99
	case Min:
		return s.Min
	case Max:
		return s.Max
	case Mean:
		return s.Mean
	default:
		return s.P50
	}
}
