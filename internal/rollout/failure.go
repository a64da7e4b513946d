package rollout

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/configstamp/configstamp/internal/workload"
)

// Failure is why a workload has failed. The zero value says that it has declined the content.
type Failure struct {
	Cause     Cause
	Pod, Word string // the pod that shows the cause, and Kubernetes' own word for it, never a message; "": none
	Verdict   string // why the cause counts as a failure; "" for containers that crash
	Returned  bool   // the workload has gone back to its former content since
}

// Cause is what keeps a workload from becoming well. Of several causes, the first counts.
type Cause uint8

// The causes. Each has its row in words.
const (
	Declined    Cause = iota
	Ordered           // a StatefulSet waits for its broken pod, whatever its template holds by now
	Crashes           // a container crashes, or cannot be pulled, configured or started
	Refused           // the API server refuses the pods
	Ending            // a pod has not ended yet
	Unscheduled       // a pod has no node
	Gated             // a pod is ready but for a readiness gate
	Unready           // a pod is not ready
	Rejected          // a node refuses or evicts a pod
	Unstarted         // the containers of a pod have not started
	Uncreated         // pods are missing, and nothing says why
	Outdated          // the containers have read what the source held in between
	Unexplained       // nothing is to be seen
)

// Mend is the advice for a failure that the content may have caused.
const Mend = "Put the old content back, or fix it: either way it rolls out by itself"

// words returns the sentence of a cause, what to do, and the command for that.
func (c Cause) words() (sentence, advice, command string) {
	const (
		permit = "The content is at fault only if it asks for more: a quota, a policy or a webhook refuses the pods. The rollout continues once they are admitted. To see what refuses them: {command}"
		wait   = "The content may not be at fault. The change continues when the pods run, or with configstamp.dev/resume on the source. To see why they do not run: {command}"
	)
	row := [...][3]string{
		Declined:    {"", Mend + ". To take the content there too: {command}", "kubectl configstamp accept {ref} -n {namespace}"},
		Ordered:     {"pod {pod}: {word}", "Put the old content back, or fix it. Then delete the broken pod, because its StatefulSet waits for it (also if the content is already right): {command}", "kubectl delete pod {pod} -n {namespace}"},
		Crashes:     {"{word}", Mend},
		Refused:     {"the API server refuses its pods (ReplicaFailure: FailedCreate)", permit, `kubectl get {ref} -n {namespace} -o jsonpath='{.status.conditions[?(@.type=="ReplicaFailure")].message}'`},
		Ending:      {"pod {pod} has been terminating for {word}", "Wait until the pod has terminated: the rollout then continues by itself"},
		Unscheduled: {"pod {pod} waits for a node ({word})", wait, "kubectl describe pod {pod} -n {namespace}"},
		Gated: {"pod {pod} is ready except for its readiness gate {word}",
			"The content may not be at fault: the owner of the condition {word} must set it. The change continues then, or with configstamp.dev/resume on the source"},
		Unready:   {"pod {pod} is not ready", Mend},
		Rejected:  {"a node refused pod {pod}: {word}", wait, "kubectl describe pod {pod} -n {namespace}"},
		Unstarted: {"the containers of pod {pod} have not started", Mend},
		Uncreated: {"pods are missing and none is created", permit, "kubectl describe {ref} -n {namespace}"},
		Outdated: {"its containers may have started while the source held other content, so they prove nothing about the present content",
			"The change continues when its pods have been restarted and are well, or with configstamp.dev/resume on the source: {command}", "kubectl rollout restart {ref} -n {namespace}"},
		Unexplained: {"", Mend},
	}[c]
	return row[0], row[1], row[2]
}

// String returns the cause in words that continue a sentence, and the verdict.
func (f Failure) String() string {
	sentence, _, _ := f.Cause.words()
	text := strings.Trim(f.fill(sentence)+"; "+f.Verdict, "; ")
	if f.Returned {
		text += "; since then it has its former content again"
	}
	return text
}

// HaltReason returns the failure of a workload, with "it" or "this change", as the reason why a change stops.
func (f Failure) HaltReason(ref workload.Ref, with string) string {
	if f.Cause == Declined {
		return "an undo of " + ref.People() + ", or its own return, declined its content" // a new leader cannot tell which
	}
	return ref.People() + " has failed with " + with + ": " + f.String()
}

// Advice returns what to do about the failure of a workload, and the command for that or that shows more.
func (f Failure) Advice(ref workload.Ref) (advice, command string) {
	_, advice, command = f.Cause.words()
	command = f.fill(command, "{ref}", ref.Text(), "{namespace}", ref.Namespace)
	return f.fill(advice, "{command}", command), command
}

func (f Failure) fill(text string, more ...string) string {
	return strings.NewReplacer(append(more, "{pod}", f.Pod, "{word}", f.Word)...).Replace(text)
}

// failure returns why the workload has failed.
func (t *take) failure() Failure {
	return *cmp.Or(t.why, &Failure{Cause: Unexplained, Verdict: "it has failed with older content"})
}

// fails returns the failure by a verdict. trouble is what all new pods suffer from; "": nothing.
func (f *Facts) fails(trouble, verdict string, now time.Time) *Failure {
	its := f.Shown(now)
	if its.Verdict = verdict; trouble != "" && its.Cause != Ordered {
		its.Cause, its.Word = Crashes, trouble
	}
	return &its
}

// Shown returns what keeps a workload from becoming well, as far as its status and its pods show it.
func (f *Facts) Shown(now time.Time) Failure {
	its, left, made := Failure{Cause: Unexplained}, 0, 0
	if f.Pods != nil && f.Pods.Access == Seen {
		for i := range f.Pods.All {
			pod := &f.Pods.All[i]
			left, made = left+one(alive(pod)), made+one(isMade(pod, f.Records.Stamps))
			if is := f.shownBy(pod, now); is.Cause < its.Cause {
				its = is
			}
		}
		if its.Cause == Unexplained && f.Status.Phase != workload.Unreported && (left < int(f.Status.Wanted) || made == 0) {
			its.Cause = Uncreated
		}
	}
	if f.Status.Refused && its.Cause > Refused {
		return Failure{Cause: Refused}
	}
	return its
}

// shownBy returns what one pod shows.
func (f *Facts) shownBy(pod *workload.Pod, now time.Time) Failure {
	shows := func(cause Cause, word string) Failure { return Failure{Cause: cause, Pod: pod.Name, Word: word} }
	switch made := isMade(pod, f.Records.Stamps); {
	case f.Status.Ordered && alive(pod) && (pod.Trouble != "" || !pod.Ready && (!made || pod.Restarted && pod.Ended != "")):
		return shows(Ordered, withEnd(cmp.Or(pod.Trouble, "not ready"), pod))
	case pod.Deleting && !pod.Finished:
		return shows(Ending, fmt.Sprintf("%s, and may for %s", now.Sub(pod.Ending).Round(time.Second), pod.Grace))
	case pod.Finished && pod.Reason != "" && pod.Carries(f.Records.Stamps):
		return shows(Rejected, pod.Reason)
	case !made || pod.Ready && pod.Trouble == "":
		return Failure{Cause: Unexplained}
	case pod.Trouble != "" || pod.Restarted && pod.Ended != "":
		return shows(Crashes, "pod "+pod.Name+": "+withEnd(cmp.Or(pod.Trouble, "its container restarts"), pod))
	case pod.Node == "":
		return shows(Unscheduled, cmp.Or(pod.Unscheduled, "no reason is given"))
	case pod.Gate != "":
		return shows(Gated, pod.Gate)
	case f.Status.Ordered:
		return shows(Ordered, "not ready")
	case pod.Started.IsZero():
		return shows(Unstarted, "")
	}
	return shows(Unready, "")
}
