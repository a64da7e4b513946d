package e2e

import (
	"fmt"
	"testing"

	"k8s.io/client-go/kubernetes"

	"github.com/configstamp/configstamp/e2e/harness"
)

// What a thief can do with the token beside workloads: nothing that gives more
// rights, runs anything, or points the webhook elsewhere. And who else can read
// the keys: nobody.

func TestStolenToken_GivesNoRightThatConfigstampDoesNotUse(t *testing.T) {
	t.Parallel()
	s := run.PlainSpace(t)
	thief := run.Stolen(t)
	theirs, own := "/api/v1/namespaces/"+s.Namespace, "/api/v1/namespaces/"+harness.OwnNamespace
	const rbac, admission = "/apis/rbac.authorization.k8s.io/v1", "/apis/admissionregistration.k8s.io/v1"
	const pod = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"miner"},"spec":{"containers":[{"name":"miner","image":"registry.example/miner:1"}]}}`
	job := `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"miner"},"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"miner","image":"registry.example/miner:1"}]}}}}`
	secret := func(name, kind string) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":%q,"annotations":{"kubernetes.io/service-account.name":"configstamp"}},"type":%q}`, name, kind)
	}
	const otherSecret = "creates the Secret of its keys and that of its certificate authority, and no other"
	for _, test := range []struct {
		what   string
		asks   request
		saying string
	}{
		{"a Pod is created", request{verb: "POST", path: theirs + "/pods", contentType: asObject, body: pod}, byRoles},
		{"a Pod is created beside configstamp", request{verb: "POST", path: own + "/pods", contentType: asObject, body: pod}, byRoles},
		{"a Job is created", request{verb: "POST", path: "/apis/batch/v1/namespaces/" + s.Namespace + "/jobs", contentType: asObject, body: job}, byRoles},
		{"a Pod is patched", request{verb: "PATCH", path: theirs + "/pods/any", contentType: asMerge, body: "{}"}, byRoles},
		{"a Pod is deleted", request{verb: "DELETE", path: theirs + "/pods/any"}, byRoles},
		{"a Pod is evicted", request{verb: "POST", path: theirs + "/pods/any/eviction", contentType: asObject, body: `{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"any"}}`}, byRoles},
		{"a command in a Pod", request{verb: "POST", path: theirs + "/pods/any/exec?command=id&stdout=true"}, byRoles},
		{"a debug container", request{verb: "PATCH", path: theirs + "/pods/any/ephemeralcontainers", contentType: asStrategic, body: "{}"}, byRoles},
		{"a port of a Pod", request{verb: "POST", path: theirs + "/pods/any/portforward"}, byRoles},
		{"the log of a Pod", request{verb: "GET", path: theirs + "/pods/any/log"}, byRoles},
		{"a node's kubelet", request{verb: "GET", path: "/api/v1/nodes/any/proxy/pods"}, byRoles},
		{"all nodes", request{verb: "GET", path: "/api/v1/nodes"}, byRoles},
		{"a node is patched", request{verb: "PATCH", path: "/api/v1/nodes/any", contentType: asMerge, body: "{}"}, byRoles},

		{"another Secret is created", request{verb: "POST", path: own + "/secrets", contentType: asObject, body: secret("another", "Opaque")}, otherSecret},
		{"a token, as a Secret", request{verb: "POST", path: own + "/secrets", contentType: asObject, body: secret("another", "kubernetes.io/service-account-token")}, otherSecret},
		{"a token, as a Secret of ours", request{verb: "POST", path: own + "/secrets", contentType: asObject, body: secret("configstamp-authority", "kubernetes.io/service-account-token")}, otherSecret},
		{"a Secret is created elsewhere", request{verb: "POST", path: theirs + "/secrets", contentType: asObject, body: secret("configstamp-key", "Opaque")}, byRoles},
		{"a Secret is patched", request{verb: "PATCH", path: theirs + "/secrets/any", contentType: asMerge, body: "{}"}, byRoles},
		{"a ConfigMap is patched", request{verb: "PATCH", path: theirs + "/configmaps/any", contentType: asMerge, body: "{}"}, byRoles},
		{"the keys are deleted", request{verb: "DELETE", path: own + "/secrets/configstamp-key"}, byRoles},
		{"a namespace is opted in", request{verb: "PATCH", path: theirs, contentType: asMerge, body: "{}"}, byRoles},
		{"service accounts are listed", request{verb: "GET", path: theirs + "/serviceaccounts"}, byRoles},
		{"events are read", request{verb: "GET", path: "/apis/events.k8s.io/v1/namespaces/" + s.Namespace + "/events"}, byRoles},
		{"a ReplicaSet is read", request{verb: "GET", path: "/apis/apps/v1/namespaces/" + s.Namespace + "/replicasets/any"}, byRoles},
		{"somebody's Lease", request{verb: "PUT", path: "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler", contentType: asObject, body: "{}"}, byRoles},

		{"its ClusterRole is read", request{verb: "GET", path: rbac + "/clusterroles/configstamp"}, byRoles},
		{"its ClusterRole is patched", request{verb: "PATCH", path: rbac + "/clusterroles/configstamp", contentType: asMerge, body: `{"rules":[]}`}, byRoles},
		{"it is bound to another role", request{verb: "POST", path: rbac + "/clusterrolebindings", contentType: asObject,
			body: `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"thief"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"cluster-admin"},"subjects":[{"kind":"ServiceAccount","name":"configstamp","namespace":"configstamp"}]}`}, byRoles},
		{"its Role is patched", request{verb: "PATCH", path: rbac + "/namespaces/configstamp/roles/configstamp", contentType: asMerge, body: `{"rules":[]}`}, byRoles},
		{"the policy is patched", request{verb: "PATCH", path: admission + "/validatingadmissionpolicies/configstamp", contentType: asMerge, body: "{}"}, byRoles},
		{"the policy is deleted", request{verb: "DELETE", path: admission + "/validatingadmissionpolicies/configstamp"}, byRoles},
		{"the policy is unbound", request{verb: "DELETE", path: admission + "/validatingadmissionpolicybindings/configstamp"}, byRoles},
		{"the policy's binding is patched", request{verb: "PATCH", path: admission + "/validatingadmissionpolicybindings/configstamp", contentType: asMerge, body: `{"spec":{"validationActions":["Audit"]}}`}, byRoles},
		{"a webhook is installed", request{verb: "POST", path: admission + "/mutatingwebhookconfigurations", contentType: asObject, body: `{"apiVersion":"admissionregistration.k8s.io/v1","kind":"MutatingWebhookConfiguration","metadata":{"name":"thief"}}`}, byRoles},
		{"somebody's webhook", request{verb: "PATCH", path: admission + "/mutatingwebhookconfigurations/another", contentType: asMerge, body: "{}"}, byRoles},
		{"a webhook of the other kind is installed", request{verb: "POST", path: admission + "/validatingwebhookconfigurations", contentType: asObject, body: `{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingWebhookConfiguration","metadata":{"name":"thief"}}`}, byRoles},
		{"somebody's webhook of the other kind", request{verb: "PATCH", path: admission + "/validatingwebhookconfigurations/another", contentType: asMerge, body: "{}"}, byRoles},
		{"its webhook of the other kind is deleted", request{verb: "DELETE", path: admission + "/validatingwebhookconfigurations/configstamp"}, byRoles},
		{"its webhook is deleted", request{verb: "DELETE", path: admission + "/mutatingwebhookconfigurations/configstamp"}, byRoles},

		{"somebody else's name", request{verb: "GET", path: own + "/secrets/configstamp-key", impersonate: "system:admin"}, byRoles},
		{"a longer token", request{verb: "POST", path: own + "/serviceaccounts/configstamp/token", contentType: asObject, body: `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest"}`}, byRoles},
		{"another's token", request{verb: "POST", path: "/api/v1/namespaces/kube-system/serviceaccounts/default/token", contentType: asObject, body: `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest"}`}, byRoles},
		{"a certificate", request{verb: "POST", path: "/apis/certificates.k8s.io/v1/certificatesigningrequests", contentType: asObject, body: `{"apiVersion":"certificates.k8s.io/v1","kind":"CertificateSigningRequest","metadata":{"name":"thief"}}`}, byRoles},
	} {
		t.Run(test.what, func(t *testing.T) { wantRefused(t, test.asks.send(t, thief), test.saying) })
	}
}

func TestKeys_NobodyElseCanReadThem(t *testing.T) {
	t.Parallel()
	s := run.PlainSpace(t)
	s.WaitServiceAccount()
	own := "/api/v1/namespaces/" + harness.OwnNamespace + "/secrets"
	for who, as := range map[string]kubernetes.Interface{
		"the default account beside configstamp": run.As(t, harness.OwnNamespace, "default", "e2e"),
		"the default account elsewhere":          run.As(t, s.Namespace, "default", "e2e"),
	} {
		for what, path := range map[string]string{
			"reads them": own + "/" + keySecret, "lists them": own, "watches them": own + "?watch=true&timeoutSeconds=1", "lists all": "/api/v1/secrets",
		} {
			t.Run(who+" "+what, func(t *testing.T) {
				wantRefused(t, request{verb: "GET", path: path}.send(t, as), `cannot `)
			})
		}
	}
	harness.Must(t, request{verb: "GET", path: own + "/" + keySecret}.send(t, run.Stolen(t))) // so that it was not the path
}
