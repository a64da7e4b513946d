package judge

import (
	"fmt"
)

// replicaSet counts the ReplicaSets of each Deployment.
func (c *court) replicaSet(event Event) {
	for _, owner := range event.Object.GetOwnerReferences() {
		if owner.Controller != nil && *owner.Controller {
			if c.made[string(owner.UID)] == nil {
				c.made[string(owner.UID)] = map[string]bool{}
			}
			c.made[string(owner.UID)][string(event.Object.GetUID())] = true
		}
	}
}

// revisions judges that no Deployment had more ReplicaSets than templates.
func (c *court) revisions() {
	for _, uid := range sortedKeys(c.made) {
		if l := c.lives[uid]; l != nil && len(c.made[uid]) > l.templates {
			c.found = append(c.found, Violation{"I2", l.name, l.version, fmt.Sprintf("%d ReplicaSets for %d templates", len(c.made[uid]), l.templates)})
		}
	}
}

// Templates is how many different templates, one after the other, a workload of
// this name has had since it was last made.
func (h *History) Templates(name string) int {
	c := h.court()
	templates := 0
	for _, event := range h.Events {
		if Name(event.Object) == name && isWorkload(event.Object.GetKind()) {
			c.workload(event)
			templates = c.lives[string(event.Object.GetUID())].templates
		}
	}
	return templates
}
