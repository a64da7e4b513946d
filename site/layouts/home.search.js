{{- $pages := slice -}}
{{- range site.Pages -}}
  {{- if .File -}}
  {{- $pages = $pages | append (dict "title" (partial "title.html" .) "url" (strings.TrimPrefix "/" .RelPermalink) "text" (.Plain | htmlUnescape)) -}}
  {{- end -}}
{{- end -}}
window.searchIndex = {{ $pages | jsonify }};
