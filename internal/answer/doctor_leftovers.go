package answer

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/seen"
	"github.com/configstamp/configstamp/internal/workload"
)

// What Reloader and wave write on workloads and only they take back.
const (
	reloaderPaused  = "deployment.reloader.stakater.com/paused-at" // Reloader: options.PauseDeploymentTimeAnnotation
	waveUnscheduled = "wave.pusher.com/scheduling-disabled"        // wave: core.SchedulingDisabledAnnotation; its value is the scheduler
	waveFinalizer   = "wave.pusher.com/finalizer"                  // wave: core.FinalizerString, which it only removes now
)

// leftovers looks for workloads in a state that a product began and alone ends, where that
// product does not run any more: in a namespace with our label or not.
func (v *visit) leftovers() {
	runs := func(dialect checksum.Dialect) bool {
		return slices.ContainsFunc(v.Peers.All, func(peer seen.Peer) bool {
			return strings.EqualFold(peer.Product, string(dialect)) && peer.Replicas > 0
		})
	}
	if !v.Peers.Looked {
		return
	}
	reloader, wave := runs(checksum.Reloader), runs(checksum.Wave)
	for _, w := range v.Workloads {
		if _, left := w.Object.Annotations[reloaderPaused]; left && !reloader && w.Status.Phase == workload.Unreported {
			v.tell(Warning, w.Namespace, w.Text(), "Reloader has paused it, and no Reloader is seen to run: nothing of it rolls out. To resume it:",
				"kubectl rollout resume {of} && kubectl annotate {of} "+reloaderPaused+"-")
		}
		if _, left := w.Object.Annotations[waveUnscheduled]; left && !wave {
			v.tell(Warning, w.Namespace, w.Text(), "wave has taken its scheduler away, and no wave is seen to run: new pods stay pending. When all that it requires exists, give it back (the annotation's value is its name, mostly default-scheduler):",
				`kubectl patch {of} --type=json -p '[{"op":"remove","path":"/metadata/annotations/wave.pusher.com~1scheduling-disabled"},{"op":"replace","path":"/spec/template/spec/schedulerName","value":"`+corev1.DefaultSchedulerName+`"}]'`) // never the annotation's words in a command to copy
		}
		if slices.Contains(w.Finalizers, waveFinalizer) && !wave {
			v.tell(Warning, w.Namespace, w.Text(), "an older wave has left a finalizer, and no wave is seen to run: it cannot be deleted, and what it is the owner of would go with it. Run wave v0.11.0 once: it removes both",
				"kubectl get {of} -o jsonpath='{.metadata.finalizers}'")
		}
	}
}
