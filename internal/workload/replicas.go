package workload

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// numbers are the replicas of an object that counts them.
type numbers struct {
	wanted, held     int64 // held are those of wanted that a partition keeps at the old revision
	total            int64
	updated, working int64 // working: updated, and as ready or available as the status says
	available        int64
}

// count reads the numbers of an object.
func (s *Signs) count(o *report) (numbers, error) {
	status := &o.Status
	switch s.Counts {
	case CountsNodes:
		updated := int64(status.UpdatedNumberScheduled)
		return numbers{wanted: int64(status.DesiredNumberScheduled), total: updated, updated: updated, working: updated, available: int64(status.NumberAvailable)}, nil
	case CountsReplicas:
		n := numbers{wanted: 1, total: int64(status.Replicas), updated: int64(status.UpdatedReplicas), available: int64(status.AvailableReplicas)}
		if o.Spec.Replicas != nil {
			n.wanted = int64(*o.Spec.Replicas)
		}
		n.working = n.updated
		for _, counted := range []*int32{status.UpdatedReadyReplicas, status.UpdatedAvailableReplicas} {
			if counted != nil {
				n.working = min(n.working, int64(*counted))
			}
		}
		var err error
		n.held, err = o.Spec.UpdateStrategy.held(n.wanted)
		return n, err
	case NoCounts:
	}
	return numbers{}, nil
}

// held is how many of the wanted replicas a partition keeps at the old revision. A
// percentage is rounded up, but one below 100% lets one of several go (OpenKruise,
// CalculatePartitionReplicas).
func (s *strategy) held(wanted int64) (int64, error) {
	partition := s.RollingUpdate.Partition
	if partition == nil {
		partition = s.Partition
	}
	if partition == nil || wanted <= 0 {
		return 0, nil
	}
	if partition.Type == intstr.Int {
		return min(max(int64(partition.IntVal), 0), wanted), nil
	}
	digits, isPercent := strings.CutSuffix(partition.StrVal, "%")
	percent, err := strconv.ParseInt(digits, 10, 32)
	if err != nil || !isPercent {
		return 0, errors.New("its partition is neither a number nor a percentage")
	}
	percent = min(max(percent, 0), 100)
	held := (wanted*percent + 99) / 100
	if percent < 100 && wanted > 1 {
		held = min(held, wanted-1)
	}
	return held, nil
}

// missing is at least how many replicas are not of the newest revision and available,
// though they shall be; a status that does not count both together may hide some.
func (n numbers) missing() int64 {
	return max(n.wanted-n.held-n.working, n.wanted-n.available, 0)
}

// done is what kubectl rollout status waits for (k8s.io/kubectl, polymorphichelpers).
func (n numbers) done() bool {
	return n.missing() == 0 && n.total-n.updated <= n.held && n.available >= n.updated
}

func clamp(n int64) int32 { return int32(min(n, math.MaxInt32)) } //nolint:gosec // it fits
