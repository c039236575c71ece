{{/* Names, labels and addresses. */}}

{{- define "moorage.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" (.Release.Name | trunc 32 | trimSuffix "-") .Chart.Name -}}
{{- end -}}
{{- end -}}

{{- define "moorage.chart" -}}
{{- printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" -}}
{{- end -}}

{{/* Labels of every object; the argument is a list of the root and the component. */}}
{{- define "moorage.labels" -}}
{{- $root := index . 0 -}}
{{ include "moorage.selector" . }}
app.kubernetes.io/part-of: moorage
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ include "moorage.chart" $root }}
{{- end -}}

{{/* Labels that select the pods of a component; the argument is as above. */}}
{{- define "moorage.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ $root.Chart.Name }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{- define "moorage.image" -}}
{{- $image := .Values.image -}}
{{- $repository := required "image.repository is not set: build an image (docs/howto/container.md), and name it" $image.repository -}}
{{- if $image.digest -}}
{{- printf "%s@%s" $repository $image.digest -}}
{{- else -}}
{{- printf "%s:%s" $repository ($image.tag | default .Chart.AppVersion) -}}
{{- end -}}
{{- end -}}

{{- define "moorage.scheme" -}}
{{- ternary "https" "http" (ne .Values.server.tls.secret "") -}}
{{- end -}}

{{/* The address of the server, for the gate and the governor. */}}
{{- define "moorage.url" -}}
{{- if .Values.moorageUrl -}}
{{- .Values.moorageUrl -}}
{{- else -}}
{{- printf "%s://%s.%s.svc:%d" (include "moorage.scheme" .) (include "moorage.fullname" .) .Release.Namespace (int .Values.server.service.port) -}}
{{- end -}}
{{- end -}}

{{/* The host names that clients use, separated by commas. */}}
{{- define "moorage.allowedHosts" -}}
{{- $name := include "moorage.fullname" . -}}
{{- $inside := printf "%s.%s" $name .Release.Namespace -}}
{{- $hosts := list $name $inside (printf "%s.svc" $inside) (printf "%s.svc.%s" $inside .Values.clusterDomain) -}}
{{- if .Values.ingress.enabled }}{{ $hosts = concat $hosts .Values.ingress.hosts }}{{ end -}}
{{- if .Values.httpRoute.enabled }}{{ $hosts = concat $hosts .Values.httpRoute.hostnames }}{{ end -}}
{{- concat $hosts .Values.server.allowedHosts | uniq | join "," -}}
{{- end -}}

{{- define "moorage.dataClaim" -}}
{{- .Values.server.database.sqlite.existingClaim | default (printf "%s-data" (include "moorage.fullname" .)) -}}
{{- end -}}

{{- define "moorage.backupClaim" -}}
{{- .Values.server.backup.existingClaim | default (printf "%s-backup" (include "moorage.fullname" .)) -}}
{{- end -}}

{{- define "moorage.boskosConfigMap" -}}
{{- .Values.boskos.existingConfigMap | default (printf "%s-boskos" (include "moorage.fullname" .)) -}}
{{- end -}}
