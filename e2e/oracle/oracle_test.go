package oracle

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/api/v1/pod"
	"sigs.k8s.io/randfill"

	"github.com/configstamp/configstamp/checksum"
)

func TestX(t *testing.T) {
	_ = randfill.New()
	pod.VisitPodSecretNames(&corev1.Pod{}, nil)
	checksum.References(&corev1.PodSpec{})
}
