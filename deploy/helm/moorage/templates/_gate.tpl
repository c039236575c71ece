{{/* The pods of the gate. */}}

{{- define "moorage.gate.command" -}}
{{- $gate := .Values.gate -}}
- moorage
- gate
- --listen={{ .Values.server.bindAddress }}:6385
- --metrics-listen={{ .Values.server.bindAddress }}:9180
- --ironic={{ $gate.ironicUrl }}
- --url={{ include "moorage.url" . }}
- --token-file=/etc/moorage/token/token
{{- if $gate.rules }}
- --rules=/etc/moorage/rules/rules.toml
{{- else }}
- --pool={{ $gate.pool }}
{{- end }}
{{- with $gate.ironicName }}
- --ironic-name={{ . }}
{{- end }}
{{- if $gate.ironicTokenSecret.name }}
- --ironic-token-file=/etc/moorage/ironic-token/token
{{- end }}
{{- if $gate.ironicAuthority.configMap }}
- --ca-file=/etc/moorage/ironic-authority/ca.crt
{{- end }}
{{- if $gate.tls.secret }}
- --tls-cert=/etc/moorage/tls/tls.crt
- --tls-key=/etc/moorage/tls/tls.key
{{- end }}
{{- if $gate.countHolds }}
- --count-holds
{{- end }}
{{- range $gate.expected }}
- --expected={{ . }}
{{- end }}
{{- end -}}

{{- define "moorage.gate.mounts" -}}
{{- $gate := .Values.gate -}}
# Large bodies of requests wait in files.
- name: tmp
  mountPath: /tmp
- name: token
  mountPath: /etc/moorage/token
  readOnly: true
{{- if $gate.rules }}
- name: rules
  mountPath: /etc/moorage/rules
  readOnly: true
{{- end }}
{{- if $gate.ironicTokenSecret.name }}
- name: ironic-token
  mountPath: /etc/moorage/ironic-token
  readOnly: true
{{- end }}
{{- if $gate.ironicAuthority.configMap }}
- name: ironic-authority
  mountPath: /etc/moorage/ironic-authority
  readOnly: true
{{- end }}
{{- if $gate.tls.secret }}
- name: tls
  mountPath: /etc/moorage/tls
  readOnly: true
{{- end }}
{{- if .Values.trustedAuthorities.configMap }}
- name: authorities
  mountPath: /authorities
  readOnly: true
{{- end }}
{{- end -}}

{{- define "moorage.gate.volumes" -}}
{{- $gate := .Values.gate -}}
# The gate keeps at most 4 GiB of bodies.
- name: tmp
  emptyDir:
    sizeLimit: 5Gi
{{ include "moorage.secretVolume" (list "token" $gate.tokenSecret "token") }}
{{- if $gate.rules }}
- name: rules
  configMap:
    name: {{ include "moorage.fullname" . }}-gate-rules
{{- end }}
{{- if $gate.ironicTokenSecret.name }}
{{ include "moorage.secretVolume" (list "ironic-token" $gate.ironicTokenSecret "token") }}
{{- end }}
{{- if $gate.ironicAuthority.configMap }}
{{ include "moorage.authorityVolume" (list "ironic-authority" $gate.ironicAuthority) }}
{{- end }}
{{- if $gate.tls.secret }}
- name: tls
  secret:
    secretName: {{ $gate.tls.secret }}
    defaultMode: 0440
{{- end }}
{{- if .Values.trustedAuthorities.configMap }}
{{ include "moorage.authorityVolume" (list "authorities" .Values.trustedAuthorities) }}
{{- end }}
{{- end -}}

{{- define "moorage.gate.pod" -}}
{{- $gate := .Values.gate -}}
serviceAccountName: {{ include "moorage.fullname" . }}-gate
automountServiceAccountToken: false
enableServiceLinks: false
# Requests that Ironic has are finished within 60 seconds.
terminationGracePeriodSeconds: 80
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  {{- toYaml .Values.podSecurityContext | nindent 2 }}
  {{- with .Values.podSecurityContext.runAsGroup }}
  fsGroup: {{ int64 . }}
  {{- end }}
containers:
  - name: gate
    image: {{ include "moorage.image" . | quote }}
    {{- with .Values.image.pullPolicy }}
    imagePullPolicy: {{ . }}
    {{- end }}
    command: {{- include "moorage.gate.command" . | nindent 6 }}
    {{- if .Values.trustedAuthorities.configMap }}
    env:
      - name: SSL_CERT_FILE
        value: /authorities/ca.crt
    {{- end }}
    ports:
      - name: ironic
        containerPort: 6385
      - name: metrics
        containerPort: 9180
    # It listens for metrics once it listens for requests; it passes most of them on without Moorage.
    startupProbe:
      httpGet:
        path: /metrics
        port: metrics
      periodSeconds: 2
      timeoutSeconds: 5
      failureThreshold: 60
    livenessProbe:
      httpGet:
        path: /metrics
        port: metrics
      periodSeconds: 10
      timeoutSeconds: 5
      failureThreshold: 6
    readinessProbe:
      tcpSocket:
        port: ironic
      periodSeconds: 5
      timeoutSeconds: 5
    lifecycle:
      preStop:
        sleep:
          seconds: 5
    {{- with $gate.resources }}
    resources: {{- toYaml . | nindent 6 }}
    {{- end }}
    securityContext: {{- toYaml .Values.containerSecurityContext | nindent 6 }}
    volumeMounts: {{- include "moorage.gate.mounts" . | nindent 6 }}
volumes: {{- include "moorage.gate.volumes" . | nindent 2 }}
{{- include "moorage.scheduling" $gate | nindent 0 }}
{{- if gt (int $gate.replicas) 1 }}
topologySpreadConstraints:
  - topologyKey: kubernetes.io/hostname
    maxSkew: 1
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{- include "moorage.selector" (list . "gate") | nindent 8 }}
    matchLabelKeys: [pod-template-hash]
{{- end }}
{{- end -}}
