#!/usr/bin/env bash
# check_packages.sh ARCHITECTURE FOLDER: checks the packages in FOLDER without installing them. CRIA_DPKG_DATABASE is
# the database of the packages to which the machine's own libraries belong.
set -euo pipefail
architecture=$1 folder=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0
fail() { echo "failed: $*"; failures=1; }

packages=(cria cria-serve cria-convert cria-mpi libcria0 libcria-dev)
programs=(cria cria-serve cria-convert cria-mpi libcria0)
for package in "${packages[@]}"; do
  files=("$folder/${package}"_*_"$architecture".deb)
  [ -f "${files[0]}" ] || { fail "there is no package $package"; continue; }
  dpkg-deb --raw-extract "${files[0]}" "$scratch/$package"
  (cd "$scratch/$package" && md5sum --quiet -c DEBIAN/md5sums) || fail "$package: md5sums"
  for document in copyright changelog.gz changelog.Debian.gz; do
    [ -f "$scratch/$package/usr/share/doc/$package/$document" ] || fail "$package: no $document"
  done
done
[ $failures = 0 ] || exit 1

field() { dpkg-deb -f "$folder/$1"_*_"$architecture".deb "$2"; }

# Compares the table of libraries with Debian's own program, which knows only the machine's own processor.
if [ "$architecture" = "$(dpkg --print-architecture)" ]; then
  mkdir "$scratch/debian"
  printf 'Source: cria\n\nPackage: cria\nArchitecture: any\n' >"$scratch/debian/control"
  for package in "${programs[@]}"; do
    mapfile -t binaries < <(find "$scratch/$package/usr" -type f -perm -u+x -o -type f -name '*.so.*')
    (cd "$scratch" && dpkg-shlibdeps --admindir="$CRIA_DPKG_DATABASE" -S"$scratch/libcria0" -O "${binaries[@]}") \
      >"$scratch/found" 2>"$scratch/warnings" ||
      { cat "$scratch/warnings"; fail "dpkg-shlibdeps"; continue; }
    tr ',' '\n' <"$scratch/found" | sed 's/^shlibs:Depends=//; s/^ *//; s/[()]//g' >"$scratch/wanted"
    # Programs that it needs, beside libraries.
    [ "$package" != cria-mpi ] || printf '%s\n' cria openmpi-bin >>"$scratch/wanted"
    field "$package" Depends | tr ',' '\n' | sed 's/^ *//; s/[()]//g' >"$scratch/given"
    diff <(cut -d' ' -f1 "$scratch/wanted" | sort) <(cut -d' ' -f1 "$scratch/given" | sort) ||
      fail "$package: other dependencies (>) than dpkg-shlibdeps finds (<)"
    while read -r name _ version; do
      given=$(sed -n "s/^$name >\?= //p" "$scratch/given")
      dpkg --compare-versions "${given:-0}" ge "${version:-0}" ||
        fail "$package: $name >= $version is needed, not '$given' (platforms/debian/libraries.txt)"
    done <"$scratch/wanted"
  done
fi

# Nobody has requested these packages from Debian, so they close no request there.
lintian --fail-on error,warning --no-cfg --allow-root --tag-display-limit 0 --display-info \
  --suppress-tags initial-upload-closes-no-bugs "$folder"/*_"$architecture".deb || fail "lintian"
exit $failures
