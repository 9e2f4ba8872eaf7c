#!/bin/sh
# Print the version: a tarball's own file, else the release tag that git finds, else the number in
# configure.ac with the commit behind it.
cd "$(dirname "$0")/.." || exit 1

if test -f .tarball-version; then
    cat .tarball-version
    exit
fi
number=$(sed -n 's/^AC_INIT(\[unshard\], \[\(.*\)\])$/\1/p' configure.ac)
commit=
if test -e .git; then
    tag=$(git describe --tags --match 'v[0-9]*' --dirty --abbrev=8 2>/dev/null) &&
        { echo "${tag#v}"; exit; }
    commit=$(git describe --always --dirty --abbrev=8 --exclude '*' 2>/dev/null)
fi
echo "$number${commit:+-g$commit}"
