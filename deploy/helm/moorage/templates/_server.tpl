{{/* The pods of the server, the same for both engines. */}}

{{- define "moorage.server.environment" -}}
{{- $server := .Values.server -}}
{{- $database := $server.database -}}
- name: MOORAGE_LISTEN
  value: {{ printf "%s:8778" $server.bindAddress | quote }}
- name: MOORAGE_ALLOWED_HOSTS
  value: {{ include "moorage.allowedHosts" . | quote }}
# The user may have no entry in /etc/passwd.
- name: HOME
  value: /var/lib/moorage
- name: XDG_STATE_HOME
  value: /var/lib/moorage
- name: MOORAGE_DATABASE
{{- if eq $database.engine "sqlite" }}
  value: sqlite:////var/lib/moorage/ledger/moorage.sqlite
{{- else if $database.postgresql.addressSecret.name }}
  valueFrom:
    secretKeyRef:
      name: {{ $database.postgresql.addressSecret.name }}
      key: {{ $database.postgresql.addressSecret.key }}
{{- else }}
  value: {{ $database.postgresql.address | quote }}
{{- end }}
{{- if eq $database.engine "postgresql" }}
{{- if $database.postgresql.passwordSecret.name }}
- name: MOORAGE_DATABASE_PASSWORD_FILE
  value: /etc/moorage/database/password
{{- end }}
{{- if $database.postgresql.authority.configMap }}
- name: PGSSLROOTCERT
  value: /etc/moorage/database-authority/ca.crt
{{- end }}
{{- end }}
{{- if $server.backup.enabled }}
- name: MOORAGE_BACKUP_DIRECTORY
  value: /var/backups/moorage
{{- end }}
{{- if $server.tls.secret }}
- name: MOORAGE_TLS_CERT
  value: /etc/moorage/tls/tls.crt
- name: MOORAGE_TLS_KEY
  value: /etc/moorage/tls/tls.key
{{- end }}
{{- if $server.keystonePasswordSecret.name }}
- name: MOORAGE_KEYSTONE_PASSWORD
  valueFrom:
    secretKeyRef:
      name: {{ $server.keystonePasswordSecret.name }}
      key: {{ $server.keystonePasswordSecret.key }}
{{- end }}
{{- if .Values.boskos.enabled }}
- name: MOORAGE_BOSKOS_LISTEN
  value: {{ printf "%s:8080" $server.bindAddress | quote }}
{{- if or .Values.boskos.config .Values.boskos.existingConfigMap }}
- name: MOORAGE_BOSKOS_CONFIG
  value: /etc/moorage/boskos/boskos-resources.yaml
{{- end }}
{{- if .Values.boskos.passwordSecret.name }}
- name: MOORAGE_BOSKOS_PASSWORD_FILE
  value: /etc/moorage/boskos-passwords/passwords
{{- else if .Values.boskos.insecure }}
- name: MOORAGE_INSECURE_BOSKOS
  value: "true"
{{- end }}
{{- end }}
{{- range $name, $value := $server.settings }}
- name: MOORAGE_{{ upper $name }}
  value: {{ include "moorage.text" $value | quote }}
{{- end }}
{{- with $server.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "moorage.server.mounts" -}}
{{- $server := .Values.server -}}
- name: data
  mountPath: /var/lib/moorage
- name: tmp
  mountPath: /tmp
{{- if $server.backup.enabled }}
- name: backup
  mountPath: /var/backups/moorage
{{- end }}
{{- if eq $server.database.engine "postgresql" }}
{{- if $server.database.postgresql.passwordSecret.name }}
- name: database
  mountPath: /etc/moorage/database
  readOnly: true
{{- end }}
{{- if $server.database.postgresql.authority.configMap }}
- name: database-authority
  mountPath: /etc/moorage/database-authority
  readOnly: true
{{- end }}
{{- end }}
{{- if $server.tls.secret }}
- name: tls
  mountPath: /etc/moorage/tls
  readOnly: true
{{- end }}
{{- if .Values.boskos.enabled }}
{{- if or .Values.boskos.config .Values.boskos.existingConfigMap }}
- name: boskos
  mountPath: /etc/moorage/boskos
  readOnly: true
{{- end }}
{{- if .Values.boskos.passwordSecret.name }}
- name: boskos-passwords
  mountPath: /etc/moorage/boskos-passwords
  readOnly: true
{{- end }}
{{- end }}
{{- with $server.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "moorage.server.volumes" -}}
{{- $server := .Values.server -}}
- name: data
{{- if eq $server.database.engine "sqlite" }}
  persistentVolumeClaim:
    claimName: {{ include "moorage.dataClaim" . }}
{{- else }}
  emptyDir:
    sizeLimit: 100Mi
{{- end }}
- name: tmp
  emptyDir:
    sizeLimit: 100Mi
{{- if $server.backup.enabled }}
- name: backup
  persistentVolumeClaim:
    claimName: {{ include "moorage.backupClaim" . }}
{{- end }}
{{- if eq $server.database.engine "postgresql" }}
{{- if $server.database.postgresql.passwordSecret.name }}
{{ include "moorage.secretVolume" (list "database" $server.database.postgresql.passwordSecret "password") }}
{{- end }}
{{- if $server.database.postgresql.authority.configMap }}
{{ include "moorage.authorityVolume" (list "database-authority" $server.database.postgresql.authority) }}
{{- end }}
{{- end }}
{{- if $server.tls.secret }}
- name: tls
  secret:
    secretName: {{ $server.tls.secret }}
    defaultMode: 0440
{{- end }}
{{- if .Values.boskos.enabled }}
{{- if or .Values.boskos.config .Values.boskos.existingConfigMap }}
- name: boskos
  configMap:
    name: {{ include "moorage.boskosConfigMap" . }}
{{- end }}
{{- if .Values.boskos.passwordSecret.name }}
{{ include "moorage.secretVolume" (list "boskos-passwords" .Values.boskos.passwordSecret "passwords") }}
{{- end }}
{{- end }}
{{- with $server.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "moorage.server.probes" -}}
{{- $scheme := include "moorage.scheme" . | upper -}}
# A start may bring the schema up to date, which is rolled back if it is ended, and loads all providers.
startupProbe:
  httpGet:
    path: /healthz
    port: http
    scheme: {{ $scheme }}
  periodSeconds: 2
  timeoutSeconds: 5
  failureThreshold: {{ div (add (int .Values.server.startSeconds) 1) 2 }}
livenessProbe:
  httpGet:
    path: /healthz
    port: http
    scheme: {{ $scheme }}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
readinessProbe:
  httpGet:
    path: /readyz
    port: http
    scheme: {{ $scheme }}
  periodSeconds: 5
  timeoutSeconds: 5
{{- end -}}

{{- define "moorage.server.pod" -}}
{{- $server := .Values.server -}}
metadata:
  labels: {{- include "moorage.labels" (list . "server") | nindent 4 }}
  {{- with $server.podAnnotations }}
  annotations: {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  serviceAccountName: {{ include "moorage.fullname" . }}-server
  automountServiceAccountToken: false
  enableServiceLinks: false
  # Waiting clients are answered at once, requests are finished; the process ends 10 seconds after the signal.
  terminationGracePeriodSeconds: {{ add (int $server.drainSeconds) 25 }}
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets: {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    {{- toYaml .Values.podSecurityContext | nindent 4 }}
    {{- with .Values.podSecurityContext.runAsGroup }}
    fsGroup: {{ int64 . }}
    # Otherwise others of the group could read the token beside the database after each start.
    fsGroupChangePolicy: OnRootMismatch
    {{- end }}
  {{- if eq $server.database.engine "sqlite" }}
  # The volume's own folder belongs to a group, so its files are not trusted: this one is private.
  initContainers:
    - name: folder
      image: {{ include "moorage.image" . | quote }}
      {{- with .Values.image.pullPolicy }}
      imagePullPolicy: {{ . }}
      {{- end }}
      command:
        - python3
        - -c
        - import os; os.makedirs("/var/lib/moorage/ledger", 0o700, exist_ok=True)
      {{- with $server.resources }}
      resources: {{- toYaml . | nindent 8 }}
      {{- end }}
      securityContext: {{- toYaml .Values.containerSecurityContext | nindent 8 }}
      volumeMounts:
        - name: data
          mountPath: /var/lib/moorage
  {{- end }}
  containers:
    - name: server
      image: {{ include "moorage.image" . | quote }}
      {{- with .Values.image.pullPolicy }}
      imagePullPolicy: {{ . }}
      {{- end }}
      {{- if $server.maintenance }}
      command:
        - python3
        - -c
        - import signal as s; s.pthread_sigmask(s.SIG_BLOCK, {s.SIGTERM}); s.sigwait({s.SIGTERM})
      {{- else }}
      command: [moorage, serve]
      {{- end }}
      env: {{- include "moorage.server.environment" . | nindent 8 }}
      ports:
        - name: http
          containerPort: 8778
        {{- if .Values.boskos.enabled }}
        - name: boskos
          containerPort: 8080
        {{- end }}
      {{- if not $server.maintenance }}
      {{- include "moorage.server.probes" . | nindent 6 }}
      {{- if and $server.drainSeconds (eq $server.database.engine "postgresql") }}
      # Meanwhile the nodes learn that this pod gets no new connections. With SQLite nobody else could
      # take them.
      lifecycle:
        preStop:
          sleep:
            seconds: {{ int $server.drainSeconds }}
      {{- end }}
      {{- end }}
      {{- with $server.resources }}
      resources: {{- toYaml . | nindent 8 }}
      {{- end }}
      securityContext: {{- toYaml .Values.containerSecurityContext | nindent 8 }}
      volumeMounts: {{- include "moorage.server.mounts" . | nindent 8 }}
  volumes: {{- include "moorage.server.volumes" . | nindent 4 }}
  {{- include "moorage.scheduling" $server | nindent 2 }}
  {{- if gt (int $server.replicas) 1 }}
  topologySpreadConstraints:
    {{- with $server.topologySpreadConstraints }}
    {{- toYaml . | nindent 4 }}
    {{- else }}
    {{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
    - topologyKey: {{ . }}
      maxSkew: 1
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels: {{- include "moorage.selector" (list $ "server") | nindent 10 }}
      matchLabelKeys: [pod-template-hash]
    {{- end }}
    {{- end }}
  {{- end }}
{{- end -}}
