#!/usr/bin/env bash
# tools/package.sh: builds Spillway, and makes four Debian packages and the tarball of the two node files of it.
#
#   tools/package.sh [--built] [--output FOLDER] | --version
#
#   --built          pack what BUILD_DIR (default build) has, without building it first
#   --output FOLDER  default BUILD_DIR/packages
#   --version        only print the packages' version
#
# The version is that of the newest release in CHANGELOG.md; after that release, with the commit's time; with +dirty where files differ
# from the commit. It downloads nothing. SOURCE_DATE_EPOCH is the commit's time unless set.
cd "$(dirname "$0")/.."
. tools/prepare.sh

built="" only_version="" output=$BUILD_DIR/packages
while [ $# -gt 0 ]; do
  case $1 in
    --built) built=yes; shift; continue ;;
    --version) only_version=yes; shift; continue ;;
    --output) output=${2:?--output needs a value} ;;
    *) sed -n 's/^# \{0,1\}//p' "$0" | sed -n '2,10p' >&2; exit 2 ;;
  esac
  shift 2
done

refuse() { # WHAT WHY DO
  printf 'tools/package.sh: %s\n  why: %s\n  do:  %s\n' "$@" >&2
  exit 1
}

check_tools() {
  local program
  for program in dh dpkg-deb dpkg-query; do
    command -v "$program" > /dev/null ||
      refuse "cannot make Debian packages" "$program is not installed" "install debhelper and dpkg-dev (tools/operators_packages.txt)"
  done
}

build_packed() {
  configure && ninja -C "$BUILD_DIR" -j "$JOBS" lib/libspillway.so cli/all agent/all deploy/slurm/all deploy/kubernetes/all
}

check_products() {
  local product
  for product in bin/spillway bin/spillway-plan bin/spillwayd bin/spillway-kubernetes lib/libspillway.so lib/spillway_spank.so; do
    [ -e "$BUILD_DIR/$product" ] ||
      refuse "$BUILD_DIR/$product is missing" "the build leaves out what lacks a library" \
        "install tools/packages.txt and tools/operators_packages.txt, and run again without --built"
  done
}

commit_time() { git log -1 --format=%ct 2> /dev/null || stat -c %Y CHANGELOG.md; }

# Entries under "Unreleased": this is no release, and sorts behind the newest one.
has_unreleased_changes() { [ -n "$(sed '/^## [0-9]/,$d' CHANGELOG.md | grep '^- ')" ]; }

# Nobody can build these packages again from the commit that their version names.
is_dirty() { [ -n "$(git status --porcelain 2> /dev/null)" ]; }

package_version() {
  local release
  release=$(sed -n 's/^## \([0-9][0-9.]*\) - .*/\1/p' CHANGELOG.md | head -1)
  if has_unreleased_changes; then release+=$(date -u -d "@$SOURCE_DATE_EPOCH" +'+%Y%m%d.%H%M%S'); fi
  if is_dirty; then release+=+dirty; fi
  echo "$release"
}

write_debian_folder() { # FOLDER
  rm -rf "$1" && mkdir -p "$1" && cp -r deploy/packages/debian "$1/debian"
  cat > "$1/debian/changelog" << END
spillway ($version) unstable; urgency=medium

  * /usr/share/doc/spillway/releases.md.gz lists the changes.

 -- $(sed -n 's/^Maintainer: //p' deploy/packages/debian/control)  $(date -uR -d "@$SOURCE_DATE_EPOCH")
END
}

make_packages() {
  local folder source=$PWD build
  folder=$(mktemp -d "$output/work.XXXXXX")
  build=$(readlink -f "$BUILD_DIR")
  rm -f "$output"/spillway*_"$version"_*.deb
  write_debian_folder "$folder"
  # debhelper puts packages beside its folder.
  (cd "$folder" && debian/rules binary SPILLWAY_BUILD="$build" SPILLWAY_SOURCE="$source") > "$output/debhelper.log" 2>&1 || {
    tail -20 "$output/debhelper.log"
    return 1
  }
  rm -rf "$folder"
}

make_tarball() {
  local name=spillway-$version-linux-x86_64
  rm -rf "${output:?}/$name" "$output/$name.tar.gz"
  cmake --install "$BUILD_DIR" --component node --prefix "$output/$name" --strip > /dev/null
  cp LICENSE "$output/$name"
  tar -C "$output" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode=go=rX,u+rw -cf - "$name" |
    gzip -9n > "$output/$name.tar.gz"
  rm -rf "${output:?}/$name"
}

export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(commit_time)}
version=$(package_version)
if [ -n "$only_version" ]; then
  echo "$version"
  exit 0
fi
check_tools
[ -n "$built" ] || step "build" build_packed
check_products
mkdir -p "$output"
output=$(cd "$output" && pwd)
step "Debian packages" make_packages
step "tarball of the node's files" make_tarball
say "$output"
ls -sh "$output"/spillway*
