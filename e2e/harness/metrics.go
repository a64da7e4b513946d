package harness

import (
	"strconv"
	"strings"
)

// ParseMetrics reads Prometheus' text: values by name with labels, as they are printed
// there: configstamp_readmissions_total{manner="rolling",result="done"}.
func ParseMetrics(text string) map[string]float64 {
	values := map[string]float64{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		at := strings.LastIndexByte(line, ' ')
		if at < 0 || strings.HasPrefix(line, "#") {
			continue
		}
		if value, err := strconv.ParseFloat(line[at+1:], 64); err == nil {
			values[line[:at]] = value
		}
	}
	return values
}

// SumOf adds up a metric, for all label values that contain each of parts.
func SumOf(values map[string]float64, metric string, parts ...string) (sum float64) {
	for name, value := range values {
		bare, labels, _ := strings.Cut(name, "{")
		matches := bare == metric
		for _, part := range parts {
			matches = matches && strings.Contains(labels, part)
		}
		if matches {
			sum += value
		}
	}
	return sum
}
