{{- define "guardrail.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{/* At most 50 characters: a StatefulSet's pods carry their name and a hash of 10 in a label of at most 63. */}}
{{- define "guardrail.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains (include "guardrail.name" .) .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "guardrail.name" .) | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "guardrail.selectorLabels" -}}
app.kubernetes.io/name: {{ include "guardrail.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: guard
{{- end -}}

{{- define "guardrail.labelsWithoutComponent" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name (.Chart.Version | replace "+" "_") }}
app.kubernetes.io/name: {{ include "guardrail.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: streaming-guardrail
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "guardrail.labels" -}}
{{ include "guardrail.labelsWithoutComponent" . }}
app.kubernetes.io/component: guard
{{- end -}}

{{- define "guardrail.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "guardrail.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "guardrail.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}

{{- define "guardrail.configMapName" -}}
{{- default (include "guardrail.fullname" .) .Values.config.existingConfigMap -}}
{{- end -}}

{{- define "guardrail.static" -}}
{{- if and (eq .Values.workload.kind "StatefulSet") .Values.workload.staticMembership -}}true{{- end -}}
{{- end -}}

{{- define "guardrail.partitions" -}}
{{- default .Values.topics.partitions .Values.autoscaling.partitions | int -}}
{{- end -}}

{{/* What a schema can't say: settings that contradict each other end the installation, with the remedy. */}}
{{- define "guardrail.check" -}}
{{- $shutdown := default dict .Values.config.settings.shutdown -}}
{{- $budget := default 25000 $shutdown.budget_ms | int -}}
{{- $least := add (div (add $budget 999) 1000) 5 | int -}}
{{- if lt (int .Values.terminationGracePeriodSeconds) $least -}}
{{- fail (printf "terminationGracePeriodSeconds is %d: the guard drains for up to shutdown.budget_ms (%d ms); give at least %d" (int .Values.terminationGracePeriodSeconds) $budget $least) -}}
{{- end -}}
{{- range $path := list "flagged.store" "flagged.webhook_url" "judge.cache.redis_url" -}}
{{- $value := $.Values.config.settings -}}
{{- range splitList "." $path -}}
{{- $value = ternary (get (default dict $value) .) "" (kindIs "map" (default dict $value)) -}}
{{- end -}}
{{- if and (kindIs "string" $value) (regexMatch "(://[^/?#]*:[^/?#]*@)|[Pp]assword=" $value) -}}
{{- fail (printf "config.settings.%s holds a password, and a ConfigMap is no place for secrets: give {env: VARIABLE} of existingSecret, or {file: PATH} below existingSecretMountPath" $path) -}}
{{- end -}}
{{- end -}}
{{- if eq .Values.autoscaling.kind "none" -}}
{{- $partitions := include "guardrail.partitions" . | int -}}
{{- if and (or .Values.topics.create .Values.autoscaling.partitions) (gt (int .Values.replicaCount) $partitions) -}}
{{- fail (printf "replicaCount is %d, and the input topic has %d partitions (autoscaling.partitions, else topics.partitions): guards beyond that have no work; give at most %d, or the true number of partitions" (int .Values.replicaCount) $partitions $partitions) -}}
{{- end -}}
{{- end -}}
{{- with .Values.autoscaling -}}
{{- if ne .kind "none" -}}
{{- $partitions := include "guardrail.partitions" $ | int -}}
{{- if gt (int .minReplicas) (int .maxReplicas) -}}
{{- fail (printf "autoscaling.minReplicas is %d, and maxReplicas %d: give at most that" (int .minReplicas) (int .maxReplicas)) -}}
{{- end -}}
{{- if gt (int .maxReplicas) $partitions -}}
{{- fail (printf "autoscaling.maxReplicas is %d, and the input topic has %d partitions (autoscaling.partitions, else topics.partitions): guards beyond that have no work; give at most %d, or the true number of partitions" (int .maxReplicas) $partitions $partitions) -}}
{{- end -}}
{{- if and (eq .kind "keda") (eq .keda.trigger "kafka") (le (int .keda.kafka.lagThreshold) $partitions) -}}
{{- fail (printf "autoscaling.keda.kafka.lagThreshold is %d, and the input topic has %d partitions: transaction markers of producers count as one waiting record a partition for ever, and would keep guards running; give more than %d" (int .keda.kafka.lagThreshold) $partitions $partitions) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and .Values.existingSecretMountPath (not .Values.existingSecret) -}}
{{- fail "existingSecretMountPath needs existingSecret, the name of the Secret to mount there" -}}
{{- end -}}
{{- if hasPrefix "/etc/guardrail/" (printf "%s/" .Values.existingSecretMountPath) -}}
{{- fail "existingSecretMountPath is in /etc/guardrail, where the ConfigMap is mounted and no folder can be made: give another, such as /etc/guardrail-secrets" -}}
{{- end -}}
{{- if and .Values.serviceMonitor.enabled .Values.podMonitor.enabled -}}
{{- fail "serviceMonitor.enabled and podMonitor.enabled would scrape every guard twice: enable one" -}}
{{- end -}}
{{- end -}}

{{/* What the guard, the hook and the test have in common. */}}
{{- define "guardrail.podSpec" -}}
automountServiceAccountToken: false
# Else a Service called guardrail-ops becomes GUARDRAIL_OPS_PORT, which reads like a misspelt setting.
enableServiceLinks: false
securityContext:
  {{- toYaml .Values.podSecurityContext | nindent 2 }}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .Values.runtimeClassName }}
runtimeClassName: {{ . }}
{{- end }}
{{- end -}}

{{- define "guardrail.container" -}}
image: {{ include "guardrail.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  {{- toYaml .Values.securityContext | nindent 2 }}
{{- $from := .Values.extraEnvFrom }}
{{- if .Values.existingSecret }}
{{- $from = prepend $from (dict "secretRef" (dict "name" .Values.existingSecret)) }}
{{- end }}
{{- with $from }}
envFrom:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "guardrail.volumeMounts" -}}
# The folder and not the file alone, which would never change.
- name: config
  mountPath: /etc/guardrail
  readOnly: true
- name: tmp
  mountPath: /tmp
{{- if .Values.existingSecretMountPath }}
- name: secret
  mountPath: {{ .Values.existingSecretMountPath }}
  readOnly: true
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Takes a dict: root, and configMap, the name of the ConfigMap. */}}
{{- define "guardrail.volumes" -}}
- name: config
  configMap:
    name: {{ .configMap }}
- name: tmp
  emptyDir:
    sizeLimit: {{ .root.Values.tmpSizeLimit }}
{{- if .root.Values.existingSecretMountPath }}
- name: secret
  secret:
    secretName: {{ .root.Values.existingSecret }}
    # Read by the group of fsGroup.
    defaultMode: 0440
{{- end }}
{{- with .root.Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}
