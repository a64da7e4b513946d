#!/usr/bin/env bash
# Builds the Dockerfile without a registry, by buildah as root, and writes what
# docker save would:
#   e2e/image.sh <version> <commit> <platform> <tarball>
# The image with Go that the Dockerfile begins with is made of this machine's Go
# and a static busybox; modules and what is compiled already come from its caches.
set -euo pipefail
cd "$(dirname "$0")/.."
version=$1 commit=$2 platform=$3 tarball=$4
busybox=$(command -v busybox)
modules=$(go env GOMODCACHE) compiled=$(go env GOCACHE)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# A store of our own: nothing of it is left on the machine.
buildah() { command buildah --root "$work/storage" --runroot "$work/run" --storage-driver vfs "$@"; }

go mod download
mkdir -p "$work/go/bin" "$work/go/usr/local" "$work/go/tmp" "$(dirname "$tarball")"
cp "$busybox" "$work/go/bin/busybox"
ln -s busybox "$work/go/bin/sh"
cp -r "$(go env GOROOT)" "$work/go/usr/local/go"
printf 'FROM scratch\nCOPY go /\nENV PATH=/usr/local/go/bin:/bin GOTOOLCHAIN=local GOMODCACHE=/modules GOCACHE=/compiled GOPROXY=off\n' >"$work/Dockerfile"
buildah bud --quiet --isolation chroot --tag localhost/go "$work" >/dev/null

buildah bud --quiet --isolation chroot --pull-never --timestamp 0 --platform "$platform" --volume "$modules:/modules:ro" --volume "$compiled:/compiled" \
	--build-arg GO=localhost/go --build-arg BUILDPLATFORM="linux/$(go env GOARCH)" --build-arg VERSION="$version" --build-arg COMMIT="$commit" \
	--tag configstamp:dev . >/dev/null
rm -f "$tarball"
buildah push --quiet configstamp:dev "docker-archive:$tarball:configstamp:dev"
