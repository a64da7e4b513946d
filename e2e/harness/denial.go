package harness

import (
	"fmt"
	"testing"
)

// DenyUpdates installs somebody's ValidatingAdmissionPolicy, which refuses every
// update of one Deployment of a namespace, saying message. The API server takes a
// moment to heed it.
func (r *Run) DenyUpdates(t testing.TB, namespace, deployment, message string) {
	t.Helper()
	r.Install(t, fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: %[1]s}
spec:
  failurePolicy: Fail
  matchConstraints: {resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [UPDATE], resources: [deployments]}]}
  validations: [{expression: "object.metadata.name != '%[2]s'", message: %[3]q}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: %[1]s}
spec:
  policyName: %[1]s
  validationActions: [Deny]
  matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}}
`, namespace, deployment, message))
}
