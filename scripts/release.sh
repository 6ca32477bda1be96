#!/usr/bin/env bash
# Makes the files of the release named in VERSION, in bin/release: an archive and a bill of materials for each system,
# the sources, which are the context of the image, the package of the client modules, the notes and SHA256SUMS. A tagged
# commit (v and the version) needs its section in CHANGELOG.md; before the tag the notes are those of [Unreleased]. The
# same commit gives the same archives.
#
#   scripts/release.sh                  all systems
#   scripts/release.sh linux/amd64      only these
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
[ $# -gt 0 ] || set -- linux/amd64 linux/arm64 darwin/amd64 darwin/arm64

version=$(cat VERSION) commit=$(git rev-parse HEAD) date=$(git log -1 --format=%cI)
out=$PWD/bin/release work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
die() {
	echo "release: $*" >&2
	exit 1
}
[ -z "$(git status --porcelain)" ] || die "there are uncommitted changes"
tag=$(git describe --tags --exact-match --match 'v[0-9]*' 2>/dev/null) || tag=
[ -z "$tag" ] || [ "$tag" = "v$version" ] || die "the tag is $tag, and VERSION is $version"
rm -rf "$out"
mkdir -p "$out"

section=$version
[ -n "$tag" ] || grep -qF "## [$version]" CHANGELOG.md || section=Unreleased
awk -v head="## [$section]" '/^## \[/ { on = index($0, head) == 1; next } on' CHANGELOG.md >"$out/NOTES.md"
grep -q '[^[:space:]]' "$out/NOTES.md" || die "CHANGELOG.md has no section [$section]"

for target; do
	os=${target%/*} arch=${target#*/} name=castellan_${version}_${target/\//_}
	dir=$work/$name/castellan-$version
	mkdir -p "$dir"
	echo "$name"
	GOOS=$os GOARCH=$arch CGO_ENABLED=0 go build -trimpath -buildvcs=false -o "$dir/castellan" \
		-tags timetzdata,grpcnotrace,nopgxregisterdefaulttypes \
		-ldflags "-s -w -X main.version=$version -X main.commit=$commit -X main.date=$date" ./cmd/castellan
	go -C tools run ./sbom "$dir/castellan" "$version" ../cmd/castellan/THIRD_PARTY_NOTICES "$out/$name.cdx.json"
	cp LICENSE cmd/castellan/THIRD_PARTY_NOTICES "$dir"
	tar --sort=name --mtime="$date" --owner=0 --group=0 --numeric-owner --mode=go=rX -C "$work/$name" \
		-c "castellan-$version" | gzip -n >"$out/$name.tar.gz"
	if [ "$os/$arch" = "$(go env GOHOSTOS)/$(go env GOHOSTARCH)" ]; then
		"$dir/castellan" version | grep -F "castellan $version (commit $commit, "
	fi
done

git archive --format=tar --prefix="castellan-$version/" "$commit" | gzip -n >"$out/castellan_${version}_source.tar.gz"
node client/js/pack.mjs "$work/js"
npm pack --silent --pack-destination "$out" "$work/js"
(cd "$out" && sha256sum -- * >SHA256SUMS && cat SHA256SUMS)
