package rollout

import (
	"strings"
	"testing"
	"time"

	"github.com/configstamp/configstamp/internal/workload"
)

// What status and pods show has one cause: of several, the one that explains the others.
func TestFacts_Shown(t *testing.T) {
	older := map[string]string{"configmap.configstamp.dev/c": "old"}
	ready := workload.Pod{Name: "ready", Node: "n", Stamps: stamps, Ready: true, Started: start}
	unready := workload.Pod{Name: "unready", Node: "n", Stamps: stamps, Started: start}
	old := workload.Pod{Name: "old", Node: "n", Stamps: older, Ready: true, Started: start}
	with := func(pod workload.Pod, name string, change func(*workload.Pod)) workload.Pod {
		pod.Name = name
		change(&pod)
		return pod
	}
	crashing := with(unready, "crashing", func(p *workload.Pod) {
		p.Trouble, p.Ended = "container app: CrashLoopBackOff", "Error with exit code 2"
	})
	ending := with(old, "ending", func(p *workload.Pod) { p.Deleting, p.Ending, p.Grace = true, start.Add(-time.Minute), time.Hour })
	homeless := with(unready, "homeless", func(p *workload.Pod) { p.Node, p.Unscheduled, p.Started = "", "Unschedulable", time.Time{} })
	gated := with(unready, "gated", func(p *workload.Pod) { p.Gate = "example.com/ready" })
	starting := with(unready, "starting", func(p *workload.Pod) { p.Started = time.Time{} })
	rejected := with(starting, "rejected", func(p *workload.Pod) { p.Finished, p.Reason = true, "OutOfcpu" })
	two := workload.Status{Phase: workload.Rolling, Wanted: 2}
	refused, ordered := two, two
	refused.Refused, ordered.Ordered = true, true
	for sentence, c := range map[string]struct {
		status    workload.Status
		pods      []workload.Pod
		access    Access
		want      Cause
		pod, word string
	}{
		"a container crashes":                          {two, []workload.Pod{old, unready, homeless, crashing}, Seen, Crashes, "crashing", "Error with exit code 2"},
		"it runs just now, between two crashes":        {two, []workload.Pod{old, with(unready, "between", func(p *workload.Pod) { p.Restarted, p.Ended = true, "Error with exit code 2" })}, Seen, Crashes, "between", "exit code 2"},
		"an old pod that crashes says nothing":         {two, []workload.Pod{ready, with(crashing, "", func(p *workload.Pod) { p.Stamps = older })}, Seen, Unexplained, "", ""},
		"but a StatefulSet waits for it":               {ordered, []workload.Pod{ready, with(crashing, "db-1", func(p *workload.Pod) { p.Stamps = older })}, Seen, Ordered, "db-1", "CrashLoopBackOff"},
		"not once that is being deleted":               {ordered, []workload.Pod{ready, with(crashing, "db-1", func(p *workload.Pod) { p.Deleting, p.Ending = true, start })}, Seen, Ending, "db-1", ""},
		"a StatefulSet waits for an old pod, too":      {ordered, []workload.Pod{ready, with(unready, "db-1", func(p *workload.Pod) { p.Stamps = older })}, Seen, Ordered, "db-1", "not ready"},
		"and for a new one, between two crashes":       {ordered, []workload.Pod{old, with(unready, "db-1", func(p *workload.Pod) { p.Restarted, p.Ended = true, "Error with exit code 2" })}, Seen, Ordered, "db-1", "not ready, after Error with exit code 2"},
		"and for a new one that never becomes ready":   {ordered, []workload.Pod{old, with(unready, "db-1", func(*workload.Pod) {})}, Seen, Ordered, "db-1", "not ready"},
		"but not with one that has no node":            {ordered, []workload.Pod{old, homeless}, Seen, Unscheduled, "homeless", ""},
		"pods are refused":                             {refused, []workload.Pod{old, old}, Seen, Refused, "", ""},
		"all of them":                                  {refused, nil, Seen, Refused, "", ""},
		"pods are refused, and may not be seen":        {refused, nil, Forbidden, Refused, "", ""},
		"some are refused, and the others crash":       {refused, []workload.Pod{crashing}, Seen, Crashes, "crashing", ""},
		"pods are refused for the room of one":         {refused, []workload.Pod{ending}, Seen, Refused, "", ""},
		"an old pod has not ended":                     {two, []workload.Pod{ending, homeless}, Seen, Ending, "ending", "1m0s, and may for 1h0m0s"},
		"no node takes a pod":                          {two, []workload.Pod{old, homeless, unready}, Seen, Unscheduled, "homeless", "Unschedulable"},
		"its readiness gate is not set":                {two, []workload.Pod{old, gated}, Seen, Gated, "gated", "example.com/ready"},
		"nodes refuse one pod after the other":         {two, []workload.Pod{old, rejected, starting}, Seen, Rejected, "rejected", "OutOfcpu"},
		"one was evicted, the next one is not ready":   {two, []workload.Pod{old, rejected, unready}, Seen, Unready, "unready", ""},
		"its containers do not start":                  {two, []workload.Pod{old, starting}, Seen, Unstarted, "starting", ""},
		"no new pod comes":                             {two, []workload.Pod{old, old}, Seen, Uncreated, "", ""},
		"one of two pods does not come":                {two, []workload.Pod{ready}, Seen, Uncreated, "", ""},
		"all is well":                                  {two, []workload.Pod{ready, ready}, Seen, Unexplained, "", ""},
		"pods may not be seen":                         {two, []workload.Pod{crashing}, Forbidden, Unexplained, "", ""},
		"no pods are wanted, of a workload at nothing": {workload.Status{Waits: "it has no replicas"}, nil, Seen, Unexplained, "", ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			f := Facts{Status: c.status, Pods: &Pods{All: c.pods, Access: c.access}}
			f.Records.Stamps = stamps
			if got := f.Shown(start); got.Cause != c.want || got.Pod != c.pod || !strings.Contains(got.Word, c.word) {
				t.Errorf("it shows %+v, want cause %d by %q: %q", got, c.want, c.pod, c.word)
			}
		})
	}
}

// The sentences, the advice and the commands.
func TestFailure_Words(t *testing.T) {
	kinds := workload.Builtin()
	deployment, _ := kinds.Find("apps", "deployments")
	ref := workload.Ref{Kind: deployment, Namespace: "shop", Name: "web"}
	const verdict = "its controller reports ProgressDeadlineExceeded"
	for cause, want := range map[Cause]struct{ sentence, advice, command string }{
		Declined: {"", "Put the old content back, or fix it: either way it rolls out by itself. To take the content there too: kubectl configstamp accept deployment/web -n shop",
			"kubectl configstamp accept deployment/web -n shop"},
		Ordered: {"pod web-1: Word; " + verdict, "Put the old content back, or fix it. Then delete the broken pod, because its StatefulSet waits for it (also if the content is already right): kubectl delete pod web-1 -n shop",
			"kubectl delete pod web-1 -n shop"},
		Crashes: {"Word; " + verdict, "Put the old content back, or fix it: either way it rolls out by itself", ""},
		Refused: {"the API server refuses its pods (ReplicaFailure: FailedCreate); " + verdict,
			"The content is at fault only if it asks for more: a quota, a policy or a webhook refuses the pods. " +
				`The rollout continues once they are admitted. To see what refuses them: kubectl get deployment/web -n shop -o jsonpath='{.status.conditions[?(@.type=="ReplicaFailure")].message}'`,
			`kubectl get deployment/web -n shop -o jsonpath='{.status.conditions[?(@.type=="ReplicaFailure")].message}'`},
		Ending: {"pod web-1 has been terminating for Word; " + verdict, "Wait until the pod has terminated: the rollout then continues by itself", ""},
		Unscheduled: {"pod web-1 waits for a node (Word); " + verdict,
			"The content may not be at fault. The change continues when the pods run, or with configstamp.dev/resume on the source. To see why they do not run: kubectl describe pod web-1 -n shop", "kubectl describe pod web-1 -n shop"},
		Gated: {"pod web-1 is ready except for its readiness gate Word; " + verdict,
			"The content may not be at fault: the owner of the condition Word must set it. The change continues then, or with configstamp.dev/resume on the source", ""},
		Unready: {"pod web-1 is not ready; " + verdict, "Put the old content back, or fix it: either way it rolls out by itself", ""},
		Rejected: {"a node refused pod web-1: Word; " + verdict,
			"The content may not be at fault. The change continues when the pods run, or with configstamp.dev/resume on the source. To see why they do not run: kubectl describe pod web-1 -n shop", "kubectl describe pod web-1 -n shop"},
		Unstarted: {"the containers of pod web-1 have not started; " + verdict, "Put the old content back, or fix it: either way it rolls out by itself", ""},
		Uncreated: {"pods are missing and none is created; " + verdict, "The content is at fault only if it asks for more: a quota, a policy or a webhook refuses the pods. " +
			"The rollout continues once they are admitted. To see what refuses them: kubectl describe deployment/web -n shop", "kubectl describe deployment/web -n shop"},
		Outdated: {"its containers may have started while the source held other content, so they prove nothing about the present content; " + verdict,
			"The change continues when its pods have been restarted and are well, or with configstamp.dev/resume on the source: kubectl rollout restart deployment/web -n shop", "kubectl rollout restart deployment/web -n shop"},
		Unexplained: {verdict, "Put the old content back, or fix it: either way it rolls out by itself", ""},
	} {
		its := Failure{Cause: cause, Pod: "web-1", Word: "Word", Verdict: verdict}
		switch cause {
		case Declined:
			its = Failure{}
		case Unexplained:
			its.Word = ""
		default:
		}
		advice, command := its.Advice(ref)
		if got := its.String(); got != want.sentence || advice != want.advice || command != want.command {
			t.Errorf("cause %d says\n%q\n%q\n%q\nwant\n%q\n%q\n%q", cause, got, advice, command, want.sentence, want.advice, want.command)
		}
	}
	its := Failure{Cause: Crashes, Word: "container app: CrashLoopBackOff"}
	if got := its.HaltReason(ref, "this change"); got != "Deployment web has failed with this change: container app: CrashLoopBackOff" {
		t.Errorf("a halt says %q", got)
	}
	if got := (Failure{}).HaltReason(ref, "it"); got != "an undo of Deployment web, or its own return, declined its content" {
		t.Errorf("a halt by an undo says %q", got)
	}
}
