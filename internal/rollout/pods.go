package rollout

import (
	"fmt"
	"slices"
	"time"

	"github.com/configstamp/configstamp/internal/workload"
)

// beginning is when the newest pod with stamps was created, zero when there is
// none, and whether the workload may have been well before: it was not when pods
// of before are left, and none of them is ready.
func beginning(pods []workload.Pod, stamps map[string]string) (began time.Time, wasWell bool) {
	old, ready := 0, 0
	for i := range pods {
		switch pod := &pods[i]; {
		case !alive(pod):
		case !pod.Carries(stamps):
			if old++; pod.Ready {
				ready++
			}
		case pod.Created.After(began):
			began = pod.Created
		}
	}
	return began, old == 0 || ready > 0
}

// alive reports whether a pod runs, or is to.
func alive(pod *workload.Pod) bool { return !pod.Deleting && !pod.Finished }

// isMade reports whether a pod that runs, or is to, was made from a template with
// stamps; without stamps, that cannot be told from others.
func isMade(pod *workload.Pod, stamps map[string]string) bool {
	return alive(pod) && (len(stamps) == 0 || pod.Carries(stamps))
}

// Made are the pods that were made from a template with stamps and run, or are to;
// without stamps, all that do.
func Made(pods []workload.Pod, stamps map[string]string) []workload.Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(pod workload.Pod) bool { return !isMade(&pod, stamps) })
}

// troubleOf says what every one of the pods suffers from, "" when one of them does
// not or there are none, when one last started anew, and whether all run. A pod
// whose container has restarted is well when it has lasted for the soak.
func troubleOf(pods []workload.Pod, now time.Time, soak time.Duration) (trouble string, started time.Time, up bool) {
	troubled := 0
	up = true
	for i := range pods {
		pod := &pods[i]
		up = up && !pod.Started.IsZero()
		if pod.Restarted && pod.Started.After(started) {
			started = pod.Started
		}
		switch {
		case pod.Trouble != "":
			trouble = withEnd(pod.Trouble, pod)
		case pod.Restarted && (pod.Started.IsZero() || now.Sub(pod.Started) < soak):
			if trouble == "" {
				trouble = withEnd("its container restarts", pod)
			}
		default:
			continue
		}
		troubled++
	}
	if troubled == 0 || troubled < len(pods) {
		return "", started, up
	}
	return fmt.Sprintf("%s (%d of %d new pods)", trouble, troubled, len(pods)), started, up
}

// lost is how many pods with stamps should have ended a minute ago, and have not: their node does
// not answer, and where a StatefulSet waits for them, no pod is made in their place.
func lost(pods []workload.Pod, stamps map[string]string, now time.Time) (lost int) {
	for i := range pods {
		if pod := &pods[i]; pod.Deleting && !pod.Finished && pod.Carries(stamps) && now.Sub(pod.Ending) > pod.Grace+time.Minute {
			lost++
		}
	}
	return lost
}

// starts reports whether a rollout has had no time yet to show anything: an old pod is ending, as
// it may, or the newest pod is younger than some time.
func (f *Facts) starts(within time.Duration, now time.Time) bool {
	return slices.ContainsFunc(f.Pods.All, func(pod workload.Pod) bool {
		ends := pod.Deleting && !pod.Finished && now.Sub(pod.Ending) <= pod.Grace
		return ends || isMade(&pod, f.Records.Stamps) && now.Sub(pod.Created) < within
	})
}

// withEnd adds to what a pod suffers from how its container has ended.
func withEnd(trouble string, pod *workload.Pod) string {
	if pod.Ended == "" {
		return trouble
	}
	return trouble + ", after " + pod.Ended
}
