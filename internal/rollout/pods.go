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
func Made(pods []workload.Pod, stamps map[string]string) (from []workload.Pod) {
	for i := range pods {
		if isMade(&pods[i], stamps) {
			from = append(from, pods[i])
		}
	}
	return from
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

// lacks says what a rollout that does not get on waits for, as far as its pods show it, in words
// that follow a failure; "" when they do not.
func (f *Facts) lacks(now time.Time) string {
	if f.Pods.Access != Seen {
		return ""
	}
	made := Made(f.Pods.All, f.Records.Stamps)
	for i := range f.Pods.All {
		if pod := &f.Pods.All[i]; pod.Deleting && !pod.Finished {
			return fmt.Sprintf(": pod %s has been ending for %s, and may for %s", pod.Name, now.Sub(pod.Ending).Round(time.Second), pod.Grace)
		}
	}
	for i := range made {
		switch pod := &made[i]; {
		case pod.Trouble != "":
			return fmt.Sprintf(": pod %s: %s", pod.Name, withEnd(pod.Trouble, pod))
		case pod.Node == "":
			return fmt.Sprintf(": pod %s waits for a node", pod.Name)
		case !pod.Ready:
			return fmt.Sprintf(": pod %s is not ready", pod.Name)
		}
	}
	if len(made) == 0 {
		return ": no new pod has been made"
	}
	return ""
}

// Broken is a pod that is in trouble, by its name: a StatefulSet waits for it, whatever its
// template holds by now. "": there is none, or nothing waits for it.
func (f *Facts) Broken() string {
	if !f.Status.Ordered || f.Pods == nil {
		return ""
	}
	for i := range f.Pods.All {
		if pod := &f.Pods.All[i]; alive(pod) && pod.Trouble != "" {
			return pod.Name
		}
	}
	return ""
}

// withEnd adds to what a pod suffers from how its container has ended.
func withEnd(trouble string, pod *workload.Pod) string {
	if pod.Ended == "" {
		return trouble
	}
	return trouble + ", after " + pod.Ended
}

// last reports whether pods have run for long enough to be healthy.
func last(pods []workload.Pod, soak time.Duration, now time.Time) bool {
	for i := range pods {
		if pods[i].Trouble != "" || pods[i].Started.IsZero() || now.Sub(pods[i].Started) < soak {
			return false
		}
	}
	return true
}
