#!/usr/bin/env bash
# Does the API server reach the webhook, and if not, why?
#   deploy/reached.sh <a namespace that is opted in> [<name of the webhook configuration>]
# With failurePolicy Ignore nobody is told when it does not. For some seconds this
# makes a copy of the webhook configuration that fails instead. The copy concerns one
# Deployment, which is created in dry runs alone. Nobody else's request can fail.
set -euo pipefail
namespace=${1:?"which namespace? Give one that is opted in: deploy/reached.sh <namespace>"}
configuration=${2:-configstamp}
copy=$configuration-reached

trap 'kubectl delete mutatingwebhookconfiguration "$copy" --ignore-not-found >/dev/null' EXIT
kubectl get mutatingwebhookconfiguration "$configuration" -o go-template='
{{- with index .webhooks 0}}
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: '"$copy"'}
webhooks:
  - name: reached.configstamp.dev
    clientConfig:
      caBundle: {{with .clientConfig.caBundle}}{{.}}{{else}}""{{end}}
      service: {namespace: {{.clientConfig.service.namespace}}, name: {{.clientConfig.service.name}}, path: {{.clientConfig.service.path}}, port: {{.clientConfig.service.port}}}
    rules: [{apiGroups: [apps], apiVersions: [v1], resources: [deployments], operations: [CREATE]}]
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: '"$namespace"'}}
    matchConditions: [{name: the-probe-alone, expression: "object.metadata.name == \"'"$copy"'\""}]
    failurePolicy: Fail
    sideEffects: None
    timeoutSeconds: {{.timeoutSeconds}}
    admissionReviewVersions: [v1]
{{end}}' | kubectl apply -f - >/dev/null

probe="{apiVersion: apps/v1, kind: Deployment, metadata: {name: $copy}, spec: {selector: {matchLabels: {app: $copy}}, template: {metadata: {labels: {app: $copy}},
  spec: {containers: [{name: probe, image: none, envFrom: [{configMapRef: {name: $copy, optional: true}}]}]}}}}"
for _ in $(seq 15); do # until the API server knows the copy
	if ! said=$(kubectl --namespace "$namespace" create --dry-run=server -o yaml -f - <<<"$probe" 2>&1); then
		printf '%s\n' "$said" >&2
		exit 1
	fi
	if grep -q "configmap.configstamp.dev/$copy: v1:" <<<"$said"; then
		echo "reached: the webhook answers, and stamps what is created in the namespace $namespace"
		exit 0
	fi
	sleep 2
done
echo "The webhook was asked and did not stamp. Is the namespace $namespace opted in, and served by this installation?" >&2
exit 1
