#!/usr/bin/env bash
# Writes the modules of another version of Kubernetes: versions/write.sh v1.34.4
#
# Some staging modules of old releases cannot be had from the module proxy any more; then the one of
# the newest patch before is taken. Others are not in the checksum database: their sums are those of
# the first download, and what is committed here holds from then on. Both are said.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
release=$1
minor=${release%.*} staging=v0.${release#v1.}
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT

# newest is the version of a staging module that there is, of patch $2 or an older one.
newest() {
	local version patch
	for ((patch = $2; patch >= 0; patch--)); do
		version=${staging%.*}.$patch
		if go mod download "$1@$version" 2>/dev/null; then break; fi
		if GONOSUMDB=$1 go mod download "$1@$version" 2>/dev/null; then
			echo "$1@$version is not in the checksum database" >&2
			break
		fi
	done
	[ "$patch" = "$2" ] || echo "$1@${staging%.*}.$2 cannot be had; $version is taken" >&2
	echo "$version"
}

upstream=$(GOFLAGS=-mod=mod go mod download -json "k8s.io/kubernetes@$release" | sed -n 's/.*"GoMod": "\(.*\)",/\1/p')
etcd=$(awk '$1 == "go.etcd.io/etcd/client/v3" {print $2; exit}' "$upstream")
cp "$here/../main.go" "$work"
{
	echo "module github.com/configstamp/configstamp/e2e/cluster/kubernetes"
	grep -E '^go ' "$upstream"
	sed -n '/^godebug /p; /^godebug (/,/^)/p' "$upstream" | awk '!seen[$0]++'
	echo "require ("
	printf '\tgo.etcd.io/etcd/server/v3 %s\n' "$etcd"
	printf '\tk8s.io/%s %s\n' component-base "$staging" kubectl "$staging" kubernetes "$release"
	echo ")"
	# Upstream has its staging modules beside it, at no version.
	echo "replace ("
	for module in $(awk '$1 ~ /^k8s.io\// && $2 == "v0.0.0" || $2 == "=>" && $3 ~ /staging/ {print $1}' "$upstream" | grep -v /sample- | sort -u); do
		printf '\t%s => %s %s\n' "$module" "$module" "$(newest "$module" "${staging##*.}")"
	done
	echo ")"
} >"$work/go.mod"
cd "$work"
GOTOOLCHAIN=local GOFLAGS=-mod=mod GONOSUMDB=k8s.io/* go mod tidy
cp go.mod "$here/$minor.mod"
cp go.sum "$here/$minor.sum"
