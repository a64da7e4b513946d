{{/* Every object's name, or what it begins with. */}}
{{- define "configstamp.name" -}}
{{- if .Values.nameOverride -}}
{{- .Values.nameOverride -}}
{{- else if contains "configstamp" .Release.Name -}}
{{- .Release.Name -}}
{{- else -}}
{{- printf "%s-configstamp" .Release.Name | trunc 48 | trimSuffix "-" -}}
{{- end -}}
{{- end }}

{{- define "configstamp.selector" -}}
app.kubernetes.io/name: configstamp
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "configstamp.labels" -}}
{{ include "configstamp.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "configstamp.metadata" -}}
name: {{ include "configstamp.name" . }}
namespace: {{ .Release.Namespace }}
labels:
  {{- include "configstamp.labels" . | nindent 2 }}
{{- end }}

{{- define "configstamp.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end }}

{{/* What cannot be, whatever a schema says. */}}
{{- define "configstamp.check" -}}
{{- if has .Release.Namespace .Values.namespaces }}
{{- fail (printf "namespaces: %q is configstamp's own namespace, which it never serves" .Release.Namespace) }}
{{- end }}
{{- if and .Values.namespaces (include "configstamp.all" .) }}
{{- fail "optIn: all and namespaces exclude each other: namespaces opts in the namespaces that it lists, and no others; leave one of the two out" }}
{{- end }}
{{- if and .Values.metrics.podMonitor.enabled .Values.metrics.serviceMonitor.enabled }}
{{- fail "metrics: enable podMonitor or serviceMonitor; both would count everything twice" }}
{{- end }}
{{- if and (eq .Values.metrics.exposure "loopback") (or .Values.metrics.podMonitor.enabled .Values.metrics.serviceMonitor.enabled) }}
{{- fail "metrics.exposure: loopback cannot be scraped by a podMonitor or serviceMonitor; use plain or tls" }}
{{- end }}
{{- if and .Values.hostNetwork .Values.networkPolicy.enabled }}
{{- fail "networkPolicy: a NetworkPolicy does nothing for Pods with hostNetwork; limit the ports in the firewall of the nodes" }}
{{- end }}
{{- if and (.Values.impact).secrets (not (include "configstamp.secrets" .)) }}
{{- fail "impact.secrets: nothing is known of Secrets with sources: [configmaps]; leave one of the two out" }}
{{- end }}
{{- if ne (empty (.Values.clientCertificates).ca) (empty (.Values.clientCertificates).names) }}
{{- fail "clientCertificates: give ca and names, or neither: others may have a certificate of the same authority" }}
{{- end }}
{{- range $key, $_ := .Values.commonLabels }}
{{- if or (hasPrefix "app.kubernetes.io/" $key) (hasPrefix "helm.sh/" $key) }}
{{- fail (printf "commonLabels: %s is a label that the chart sets itself; choose another one" $key) }}
{{- end }}
{{- end }}
{{- if not (and .Values.webhook.port .Values.webhook.metricsPort .Values.webhook.healthPort .Values.controller.metricsPort .Values.controller.healthPort (or (.Values.impact).port (not (include "configstamp.impact" .)))) }}
{{- fail "webhook.port, or another port, has no value, as after --reuse-values with a new chart: give your values file instead, or --reset-then-reuse-values" }}
{{- end }}
{{- $taken := dict }}
{{- range include "configstamp.ports" . | fromYamlArray }}
{{- $port := int .port | toString }}
{{- if hasKey $taken $port }}
{{- fail (printf "%s and %s are both %s, and the two containers share one network; give each a port of its own" (get $taken $port) .value $port) }}
{{- end }}
{{- if and $.Values.hostNetwork (eq $port "10250") }}
{{- fail (printf "%s: 10250 is the kubelet's own port on every node, so it cannot be used with hostNetwork; choose another one" .value) }}
{{- end }}
{{- $_ := set $taken $port .value }}
{{- end }}
{{- end }}

{{/* Whether the whole cluster is opted in; "" is no. */}}
{{- define "configstamp.all" -}}
{{- if eq (.Values.optIn | default "labelled") "all" }}on{{ end -}}
{{- end }}

{{/* Namespaces that are never served, as JSON. The program adds the same ones to its list. */}}
{{- define "configstamp.never" -}}
{{- $also := include "configstamp.all" . | empty | ternary (list) (list "kube-system" "kube-node-lease") }}
{{- concat .Values.excludedNamespaces (list .Release.Namespace) $also | uniq | toJson -}}
{{- end }}

{{/* Whether the Namespace of a request is opted in, as CEL. */}}
{{- define "configstamp.namespaceOptedIn" -}}
namespaceObject.metadata.?labels[?'configstamp.dev/inject'].orValue('') {{ include "configstamp.all" . | empty | ternary "== 'enabled'" "!= 'disabled'" }}
{{- end }}

{{/*
Whether a workload is served, as CEL. A dict: root is the chart, and annotations is the list of the workload's
annotations and its template's, as CEL. variables.inject is the value of its label.
*/}}
{{- define "configstamp.served" -}}
{{- $values := .root.Values -}}
{{- if $values.namespaces -}}
variables.inject != 'disabled' && request.namespace in {{ include "configstamp.list" $values.namespaces }}
{{- else -}}
!(request.namespace in {{ include "configstamp.list" (include "configstamp.never" .root | fromJsonArray) }}) && (variables.inject == 'enabled' || variables.inject != 'disabled'
&& ({{ include "configstamp.namespaceOptedIn" .root }}
{{- with include "configstamp.dialects" .root | fromJsonArray }}
|| {{ $.annotations }}.exists(annotations, annotations.size() <= 3000 && annotations.exists(key,
({{ if has "reloader" . }}key.contains('reloader.stakater.com/'){{ end }}{{ if gt (len .) 1 }} || {{ end }}{{ if has "wave" . }}key.startsWith('wave.pusher.com/'){{ end }})
&& !(annotations[key] in ['false', 'False', 'FALSE', 'f', 'F', '0'])))
{{- end }}))
{{- end }}
{{- end }}

{{/*
The namespaces that a webhook is asked about, as requirements. A dict: root is the chart, off is for none, and
optedIn for those that are opted in, else for the others.
*/}}
{{- define "configstamp.namespaces" -}}
{{- if .off -}}
- key: kubernetes.io/metadata.name
  operator: DoesNotExist
{{- else if .root.Values.namespaces -}}
- key: kubernetes.io/metadata.name
  operator: In
  values: {{ toJson .root.Values.namespaces }}
{{- else }}
{{- $all := include "configstamp.all" .root | empty | not -}}
- key: configstamp.dev/inject
  operator: {{ ne .optedIn $all | ternary "In" "NotIn" }}
  values: [{{ $all | ternary "disabled" "enabled" }}]
- key: kubernetes.io/metadata.name
  operator: NotIn
  values: {{ include "configstamp.never" .root }}
{{- end }}
{{- end }}

{{/* Whether there are impact warnings; "" is no. Values of an earlier chart (--reuse-values) have none of it. */}}
{{- define "configstamp.impact" -}}
{{- if or (.Values.impact).configMaps (.Values.impact).secrets }}on{{ end -}}
{{- end }}

{{/* Whether Secrets count; "" is no. */}}
{{- define "configstamp.secrets" -}}
{{- if has "secrets" (.Values.sources | default (list "secrets")) }}on{{ end -}}
{{- end }}

{{/* The dialects that are switched on, or can be without a change of the webhook configuration, as JSON. */}}
{{- define "configstamp.dialects" -}}
{{- (.Values.settings).dialects | default false | ternary (list "reloader" "wave") (.Values.dialects | default list) | toJson -}}
{{- end }}

{{/* Whether pods are pinned; "" is no. */}}
{{- define "configstamp.pins" -}}
{{- if (.Values.pins).enabled }}on{{ end -}}
{{- end }}

{{/* Whether a policy puts back the checksums that an update drops; "" is no. YAML reads on and off as truths. */}}
{{- define "configstamp.keepsStamps" -}}
{{- $keep := kindIs "invalid" .Values.keepStamps | ternary "auto" (toString .Values.keepStamps) -}}
{{- if or (has $keep (list "on" "true")) (and (eq $keep "auto") (.Capabilities.APIVersions.Has "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy")) }}on{{ end -}}
{{- end }}

{{/* Whether ConfigRollouts are written; "" is no. */}}
{{- define "configstamp.report" -}}
{{- if (.Values.report).enabled }}on{{ end -}}
{{- end }}

{{/*
Whether the webhook configuration has the entry for Pods; "" is no. Once it was there it stays, and
selects nothing while pins are off: with server-side apply, which keeps what others own, its
caBundle would stay alone, and the API server refuses such an entry.
*/}}
{{- define "configstamp.pinsEntryStays" -}}
{{- if include "configstamp.pins" . }}on{{ else }}
{{- range (lookup "admissionregistration.k8s.io/v1" "MutatingWebhookConfiguration" "" (include "configstamp.name" .)).webhooks }}
{{- if eq .name "pins.configstamp.dev" }}on{{ end }}
{{- end }}
{{- end }}
{{- end }}

{{/* Whether the controller serves by TLS, and so has a certificate; "" is no. */}}
{{- define "configstamp.controllerServes" -}}
{{- if or (eq .Values.metrics.exposure "tls") (include "configstamp.impact" .) }}on{{ end -}}
{{- end }}

{{/* The ports that are listened on, and the values that give them. As YAML, for fromYamlArray. */}}
{{- define "configstamp.ports" -}}
- {value: webhook.port, port: {{ .Values.webhook.port }}}
{{- if include "configstamp.impact" . }}
- {value: impact.port, port: {{ .Values.impact.port }}}
{{- end }}
- {value: webhook.metricsPort, port: {{ .Values.webhook.metricsPort }}}
- {value: controller.metricsPort, port: {{ .Values.controller.metricsPort }}}
{{- if ne .Values.metrics.exposure "plain" }}
- {value: webhook.healthPort, port: {{ .Values.webhook.healthPort }}}
- {value: controller.healthPort, port: {{ .Values.controller.healthPort }}}
{{- end }}
{{- end }}

{{/* The rest of a flag list, of a map from its name in camelCase to a value; empty ones are left out. YAML reads off as false, true as a truth, and large numbers as floating ones. */}}
{{- define "configstamp.flags" -}}
{{- range $name, $value := . }}
{{- if kindIs "bool" $value }}
{{- $value = ternary "true" (ternary "off" "false" (eq $name "step")) $value }}
{{- else if kindIs "float64" $value }}
{{- $value = int64 $value }}
{{- end }}
{{- if ne (toString $value) "" }}
- {{ printf "--%s=%s" (kebabcase $name) (toString $value) | quote }}
{{- end }}
{{- end }}
{{- end }}

{{/* The flags of both processes. */}}
{{- define "configstamp.args" -}}
- --namespace={{ .Release.Namespace }}
- --name={{ include "configstamp.name" . }}
{{- if .Values.namespaces }}
- --namespaces={{ join "," .Values.namespaces }}
{{- else }}
- --excluded-namespaces={{ join "," .Values.excludedNamespaces }}
{{- end }}
{{- if include "configstamp.all" . }}
- --opt-in=all
{{- end }}
{{- if .Values.dialects }}
- --dialects={{ join "," .Values.dialects }}
{{- end }}
{{- if not (include "configstamp.secrets" .) }}
- --sources=configmaps
{{- end }}
{{- if .Values.secretProviderClasses }}
- --secret-provider-classes
{{- end }}
{{- if include "configstamp.pins" . }}
- --pins
{{- end }}
{{- range .Values.workloads }}
- --workload={{ printf "%s/%s/%s=%s" .group .version .resource .template }}{{ with .rollout }},rollout={{ . }}{{ end }}
{{- end }}
{{- include "configstamp.flags" .Values.policy }}
{{- if ne .Values.log.format "json" }}
- --log-format={{ .Values.log.format }}
{{- end }}
{{- if .Values.log.verbosity }}
- -v={{ .Values.log.verbosity }}
{{- end }}
{{- end }}

{{/* The environment of a container; takes its name, and the chart's values as .root. The garbage collector has to know what the container may take. */}}
{{- define "configstamp.environment" -}}
- name: CONFIGSTAMP_MEMORY_LIMIT
  valueFrom:
    resourceFieldRef: {containerName: {{ .container }}, resource: limits.memory}
{{- if (.root.Values.settings).dialects }}
- name: CONFIGSTAMP_DIALECTS
  valueFrom:
    configMapKeyRef: {name: {{ include "configstamp.name" .root }}-settings, key: dialects, optional: true}
{{- end }}
{{- with .root.Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* How long the controller keeps snapshots. */}}
{{- define "configstamp.snapshots" -}}
{{- if include "configstamp.pins" . -}}
{{- with .Values.pins }}
{{- include "configstamp.flags" (dict "snapshots" .snapshots "snapshotGrace" .grace) }}
{{- end }}
{{- end }}
{{- end }}

{{/* How a process has its certificate. */}}
{{- define "configstamp.certificate" -}}
{{- if eq .Values.certificates.mode "self-managed" }}
- --self-managed-certificate
{{- else }}
- --tls-cert-file=/certificate/tls.crt
- --tls-key-file=/certificate/tls.key
{{- end }}
{{- if eq (toString .Values.certificates.minTLSVersion) "1.2" }}
- --tls-min-version=1.2
{{- end }}
{{- end }}

{{/* Who may call a process where the API server calls it. */}}
{{- define "configstamp.clients" -}}
{{- if (.Values.clientCertificates).ca }}
- --client-ca-file=/clients/ca.crt
- --client-names={{ join "," .Values.clientCertificates.names }}
{{- end }}
{{- end }}

{{/* What a container mounts of the Pod's volumes. */}}
{{- define "configstamp.mounts" -}}
{{- if eq .Values.certificates.mode "cert-manager" }}
- name: certificate
  mountPath: /certificate
  readOnly: true
{{- end }}
{{- if (.Values.clientCertificates).ca }}
- name: clients
  mountPath: /clients
  readOnly: true
{{- end }}
{{- end }}

{{/* Where a process tells of itself; takes its own values as .process, and the chart's as .root. */}}
{{- define "configstamp.exposure" -}}
{{- if eq .root.Values.metrics.exposure "plain" }}
- --metrics-address=:{{ .process.metricsPort }}
{{- else }}
- --health-address=:{{ .process.healthPort }}
- --metrics-address={{ if eq .root.Values.metrics.exposure "loopback" }}127.0.0.1{{ end }}:{{ .process.metricsPort }}
{{- if eq .root.Values.metrics.exposure "tls" }}
- --metrics-tls
{{- end }}
{{- end }}
{{- end }}

{{/*
What every container may. The kubelet takes the user of an image over, and not its group,
which would be root's. It cannot be named for the Pod: containerd makes no sandbox with a
group and without a user.
*/}}
{{- define "configstamp.restricted" -}}
{{- if not (.Values.podSecurityContext).runAsGroup }}
runAsGroup: 65532
{{- end }}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{/* What has a pod template and rolls: Kubernetes' own kinds, custom ones that are known, those of values. As YAML, for fromYamlArray. */}}
{{- define "configstamp.rolling" -}}
- {group: apps, version: v1, resources: [deployments, statefulsets, daemonsets]}
- {group: batch, version: v1, resources: [cronjobs]}
- {group: argoproj.io, version: v1alpha1, resources: [rollouts]}
- {group: apps.openshift.io, version: v1, resources: [deploymentconfigs]}
- {group: apps.kruise.io, version: v1alpha1, resources: [clonesets]}
- {group: serving.knative.dev, version: v1, resources: [services]}
{{- range .Values.workloads }}
- {group: {{ .group }}, version: {{ .version }}, resources: [{{ .resource }}]}
{{- end }}
{{- end }}
