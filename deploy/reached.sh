#!/usr/bin/env bash
# Does the API server reach the webhooks, and if not, why?
#   deploy/reached.sh <a namespace that is opted in> [<name of the webhook configurations>]
# With failurePolicy Ignore, nothing reports that it does not. For some seconds this
# makes a copy of each webhook configuration that fails instead. The copies concern one
# Deployment and two ConfigMaps, which are created in dry runs only. No other
# request can fail.
set -euo pipefail
namespace=${1:?"which namespace? Give one that is opted in: deploy/reached.sh <namespace>"}
configuration=${2:-configstamp}
copy=$configuration-reached unreachable=$configuration-reached-not

trap 'kubectl delete mutatingwebhookconfigurations,validatingwebhookconfigurations "$copy" --ignore-not-found >/dev/null' EXIT

# entry <group> <resource> <name>: an entry of a copy, which asks where the first entry
# does, when an object of that name is created.
entry() {
	printf '%s' '
  - name: '"${3#"$configuration"-}"'.configstamp.dev
    clientConfig:
      caBundle: {{with .clientConfig.caBundle}}{{.}}{{else}}""{{end}}
      service: {namespace: {{.clientConfig.service.namespace}}, name: {{.clientConfig.service.name}}, path: {{.clientConfig.service.path}}, port: {{.clientConfig.service.port}}}
    rules: [{apiGroups: ["'"$1"'"], apiVersions: [v1], resources: ['"$2"'], operations: [CREATE]}]
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: '"$namespace"'}}
    matchConditions: [{name: the-probe-alone, expression: "object.metadata.name == \"'"$3"'\""}]
    failurePolicy: Fail
    sideEffects: None
    timeoutSeconds: {{.timeoutSeconds}}
    admissionReviewVersions: [v1]'
}

# copied <kind> <entries>: makes the copy of a configuration.
copied() {
	kubectl get "$1" "$configuration" -o go-template='
apiVersion: admissionregistration.k8s.io/v1
kind: '"$1"'
metadata: {name: '"$copy"'}
webhooks:{{with index .webhooks 0}}'"$2"'{{end}}
' | kubectl apply -f - >/dev/null
}

# created <manifest>: what the API server says to its creation, in a dry run.
created() { kubectl --namespace "$namespace" create --dry-run=server -o yaml -f - <<<"$1" 2>&1; }

stamps() {
	copied MutatingWebhookConfiguration "$(entry apps deployments "$copy")"
	probe="{apiVersion: apps/v1, kind: Deployment, metadata: {name: $copy}, spec: {selector: {matchLabels: {app: $copy}}, template: {metadata: {labels: {app: $copy}},
  spec: {containers: [{name: probe, image: none, envFrom: [{configMapRef: {name: $copy, optional: true}}]}]}}}}"
	for _ in $(seq 15); do # until the API server knows the copy
		if ! said=$(created "$probe"); then
			printf '%s\n' "$said" >&2
			return 1
		fi
		if grep -q "configmap.configstamp.dev/$copy: v1:" <<<"$said"; then
			echo "reached: the webhook answers, and stamps what is created in the namespace $namespace"
			return
		fi
		sleep 2
	done
	echo "The webhook was asked and did not stamp. Is the namespace $namespace opted in, and served by this installation?" >&2
	return 1
}

# Who answers says nothing of it. So a second entry of the copy asks a Service that is not
# there: once that fails, the API server knows the copy.
warnings() {
	if [ -z "$(kubectl get validatingwebhookconfigurations "$configuration" --ignore-not-found -o name)" ]; then
		echo "impact warnings are off: there is no ValidatingWebhookConfiguration $configuration"
		return
	fi
	nowhere=$(entry "" configmaps "$unreachable" | sed "s/name: {{.clientConfig.service.name}}/name: $unreachable/")
	copied ValidatingWebhookConfiguration "$(entry "" configmaps "$copy")$nowhere"
	for _ in $(seq 15); do
		if ! created "{apiVersion: v1, kind: ConfigMap, metadata: {name: $unreachable}}" >/dev/null; then
			if ! said=$(created "{apiVersion: v1, kind: ConfigMap, metadata: {name: $copy}}"); then
				printf '%s\n' "$said" >&2
				return 1
			fi
			echo "reached: the controllers answer what an edit rolls out"
			return
		fi
		sleep 2
	done
	echo "The API server did not heed the copy of the ValidatingWebhookConfiguration within 30 s: ask again." >&2
	return 1
}

stamps
warnings
