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

{{- define "guardrail.gatewayLabels" -}}
app.kubernetes.io/name: {{ include "guardrail.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: gateway
{{- end -}}

{{/* The gateway's own variables, mounts and volumes, which the test needs too. */}}
{{- define "guardrail.gatewayEnv" -}}
- name: GUARDRAIL_SERVE__HOST
  value: {{ .Values.ops.host | quote }}
- name: GUARDRAIL_SERVE__PORT
  value: {{ .Values.gateway.port | int | quote }}
{{- if .Values.gateway.keysSecret }}
- name: GUARDRAIL_SERVE__KEYS__FILE
  value: /etc/guardrail-gateway/keys/keys.yaml
{{- end }}
{{- if .Values.gateway.tlsSecret }}
- name: GUARDRAIL_SERVE__CERTIFICATE
  value: /etc/guardrail-gateway/tls/tls.crt
- name: GUARDRAIL_SERVE__PRIVATE_KEY
  value: /etc/guardrail-gateway/tls/tls.key
{{- end }}
{{- end -}}

{{- define "guardrail.gatewayMounts" -}}
{{- range $what := list "keys" "tls" }}
{{- if get $.Values.gateway (printf "%sSecret" $what) }}
- name: gateway-{{ $what }}
  mountPath: /etc/guardrail-gateway/{{ $what }}
  readOnly: true
{{- end }}
{{- end }}
{{- end -}}

{{- define "guardrail.gatewayVolumes" -}}
{{- range $what := list "keys" "tls" }}
{{- with get $.Values.gateway (printf "%sSecret" $what) }}
- name: gateway-{{ $what }}
  secret:
    secretName: {{ . }}
    defaultMode: 0440
{{- end }}
{{- end }}
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

{{/* The label job of the guards' series, as the monitors give it. */}}
{{- define "guardrail.job" -}}
{{- if .Values.podMonitor.enabled }}{{ .Release.Namespace }}/{{ end }}{{ include "guardrail.fullname" . }}
{{- end -}}

{{- define "guardrail.partitions" -}}
{{- default .Values.topics.partitions .Values.autoscaling.partitions | int -}}
{{- end -}}

{{/* The brokers' ports as the NetworkPolicy opens them, with commas: those of the settings, unless others are given. */}}
{{- define "guardrail.kafkaPorts" -}}
{{- $given := list -}}
{{- range .Values.networkPolicy.kafka.ports }}{{ $given = append $given (int . | toString) }}{{ end -}}
{{- $kafka := default dict .Values.config.settings.kafka -}}
{{- $wanted := list -}}
{{- range splitList "," (default "localhost:9092" $kafka.bootstrap_servers) -}}
{{- $server := trim . -}}
{{- if not (or $.Values.config.existingConfigMap (regexMatch "^([^]:[]+|\\[[^][]+\\]):[0-9]{1,5}$" $server)) -}}
{{- fail (printf "kafka.bootstrap_servers (%s): %q has no port, and the NetworkPolicy opens none but these: give HOST:PORT, such as %s:9092" $kafka.bootstrap_servers $server (default "kafka" $server)) -}}
{{- end -}}
{{- $wanted = append $wanted (regexFind "[0-9]+$" $server) -}}
{{- end -}}
{{- if .Values.config.existingConfigMap -}}
{{- if not $given -}}
{{- fail "networkPolicy.kafka.ports: give the ports of kafka.bootstrap_servers, which the chart can't see in config.existingConfigMap" -}}
{{- end -}}
{{- else if $given -}}
{{- range $wanted -}}
{{- if not (has . $given) -}}
{{- fail (printf "networkPolicy.kafka.ports lacks %s, a port of kafka.bootstrap_servers (%s): add it, or leave ports empty" . $kafka.bootstrap_servers) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- default $wanted $given | uniq | join "," -}}
{{- end -}}

{{/* What the settings reach beyond Kafka and DNS and no rule of networkPolicy.extraEgress lets out, a line each. */}}
{{- define "guardrail.notLetOut" -}}
{{- $settings := .Values.config.settings -}}
{{- $judge := default dict $settings.judge -}}
{{- $llm := default dict $judge.llm -}}
{{- $kinds := list (default "local" $judge.kind) -}}
{{- range $settings.policies -}}
{{- $kinds = append $kinds (default "" (default dict .).judge) -}}
{{- end -}}
{{- $reached := dict "judge.llm.base_url" $llm.base_url "judge.http.url" (default dict $judge.http).url "judge.cache.redis_url" (default dict $judge.cache).redis_url "kafka.sasl_oauth_token_url" (default dict $settings.kafka).sasl_oauth_token_url -}}
{{- if and (not $llm.base_url) (or (has "llm" $kinds) (has "cascade" $kinds)) -}}
{{- $_ := set $reached "judge.llm.base_url" "https://api.openai.com/v1" -}}
{{- end -}}
{{- range $number, $fallback := $llm.fallbacks -}}
{{- $_ := set $reached (printf "judge.llm.fallbacks.%d.base_url" $number) $fallback.base_url -}}
{{- end -}}
{{- if .Values.flagged.enabled -}}
{{- $flagged := default dict $settings.flagged -}}
{{- $_ := set $reached "flagged.store" $flagged.store -}}
{{- $_ := set $reached "flagged.webhook_url" $flagged.webhook_url -}}
{{- end -}}
{{- if (default dict $settings.ops).traces -}}
{{- $_ := set $reached "OTEL_EXPORTER_OTLP_ENDPOINT" "http://localhost:4318" -}}
{{- range .Values.extraEnv -}}
{{- if eq .name "OTEL_EXPORTER_OTLP_ENDPOINT" -}}
{{- $_ := set $reached .name (default (dict) .value) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $defaults := dict "http" 80 "https" 443 "redis" 6379 "rediss" 6379 "postgresql" 5432 "postgres" 5432 -}}
{{- range $name, $address := $reached -}}
{{- $port := 0 -}}
{{- $where := "an address that the chart can't see" -}}
{{- if and $address (kindIs "string" $address) -}}
{{- $url := urlParse $address -}}
{{- $port = default (get $defaults $url.scheme) (regexFind "[0-9]+$" (regexFind ":[0-9]+$" $url.host) | int) | int -}}
{{- $where = printf "%s, port %d" $url.hostname $port -}}
{{- end -}}
{{- $out := ternary true false (or (not $address) (hasPrefix "unix:" (toString $address)) (hasPrefix "sqlite:" (toString $address))) -}}
{{- range $.Values.networkPolicy.extraEgress -}}
{{- if not .ports }}{{ $out = true }}{{ end -}}
{{- range .ports -}}
{{- if and $port (or (eq (toString .port) (toString $port)) (and .endPort (le (int .port) $port) (ge (int .endPort) $port))) }}{{ $out = true }}{{ end -}}
{{- end -}}
{{- end -}}
{{- if not $out }}
  {{ $name }}: {{ $where }}
{{- end -}}
{{- end -}}
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
{{- if and (eq .Values.autoscaling.kind "hpa") (not (or (dig "requests" "cpu" "" .Values.resources) (dig "limits" "cpu" "" .Values.resources))) -}}
{{- fail "autoscaling.kind is hpa, which counts in shares of resources.requests.cpu: give that" -}}
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

{{/* Takes a dict: root, and secret, the name of the Secret. */}}
{{- define "guardrail.container" -}}
image: {{ include "guardrail.image" .root | quote }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
securityContext:
  {{- toYaml .root.Values.securityContext | nindent 2 }}
{{- $from := .root.Values.extraEnvFrom }}
{{- if .secret }}
{{- $from = prepend $from (dict "secretRef" (dict "name" .secret)) }}
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

{{/* Takes a dict: root, and configMap and secret, the names of the ConfigMap and the Secret. */}}
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
    secretName: {{ .secret }}
    # Read by the group of fsGroup.
    defaultMode: 0440
{{- end }}
{{- with .root.Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}
