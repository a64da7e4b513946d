package deploy

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// The garbage collector is told what the container may take: in bytes, its own
// limit, whatever that is set to.
func TestMemoryLimitIsKnown(t *testing.T) {
	t.Parallel()
	for name, values := range variants {
		t.Run(name, func(t *testing.T) {
			for _, container := range only[*appsv1.Deployment](t, rendered(t, values...)).Spec.Template.Spec.Containers {
				at := slices.IndexFunc(container.Env, func(v corev1.EnvVar) bool { return v.Name == "CONFIGSTAMP_MEMORY_LIMIT" })
				if at < 0 {
					t.Errorf("%s is told nothing", container.Name)
					continue
				}
				told := container.Env[at].ValueFrom.ResourceFieldRef
				if told.ContainerName != container.Name || told.Resource != "limits.memory" || !told.Divisor.IsZero() {
					t.Errorf("%s is told %v", container.Name, told)
				}
			}
		})
	}
}
