{{/* What pods have in common. */}}

{{/* Where pods may run; the argument is the values of a component. */}}
{{- define "moorage.scheduling" -}}
{{- with .nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end -}}

{{/* A volume with one key of a Secret, if it is named: root, name of the volume, reference, file. */}}
{{- define "moorage.secretVolume" -}}
{{- $name := index . 0 }}{{ $secret := index . 1 }}{{ $file := index . 2 -}}
- name: {{ $name }}
  secret:
    secretName: {{ $secret.name }}
    defaultMode: 0440
    items:
      - key: {{ $secret.key }}
        path: {{ $file }}
{{- end -}}

{{/* A volume with one key of a ConfigMap: name of the volume, reference. */}}
{{- define "moorage.authorityVolume" -}}
{{- $name := index . 0 }}{{ $map := index . 1 -}}
- name: {{ $name }}
  configMap:
    name: {{ $map.configMap }}
    items:
      - key: {{ $map.key }}
        path: ca.crt
{{- end -}}

{{/* A number, text or list as the value of an environment variable. */}}
{{- define "moorage.text" -}}
{{- if kindIs "slice" . -}}
{{- join "," . -}}
{{- else if and (kindIs "float64" .) (eq . (floor .)) -}}
{{- int64 . -}}
{{- else -}}
{{- . -}}
{{- end -}}
{{- end -}}
