#!/bin/sh
# From a fresh Debian to a first answer, or to all tests.
#
#   ./quickstart.sh          install what is missing, build in build/, simulate a built-in model
#   ./quickstart.sh check    the same set-up, then every test, and in build-tsan/ those of threads and
#                            ranks again under ThreadSanitizer
#
# Without apt or root nothing is installed: it says what is missing, or goes on if nothing is.
set -eu
cd "$(dirname "$0")"

packages="autoconf automake gcc libc6-dev make pkg-config libcjson-dev libsqlite3-dev zlib1g-dev mandoc"

# What builds with MPI and with OpenBLAS need: tests take them where apt has them.
extras="libopenmpi-dev libopenblas-dev"

# The packages whose program or file is not there.
missing() {
    need autoconf autoconf
    need automake automake
    need gcc "${CC:-cc}"
    need make make
    need mandoc mandoc
    if need pkg-config pkg-config; then
        pkg-config --exists libcjson 2>/dev/null || echo libcjson-dev
        pkg-config --exists sqlite3 2>/dev/null || echo libsqlite3-dev
        pkg-config --exists zlib 2>/dev/null || echo zlib1g-dev
    else
        echo libcjson-dev libsqlite3-dev zlib1g-dev
    fi
    test -f /usr/include/stdio.h || echo libc6-dev
}

# Print the package unless the program is there.
need() {
    command -v "$2" >/dev/null 2>&1 || { echo "$1"; return 1; }
}

set_up() {
    lacking=$(missing || true)
    test -n "$lacking" || return 0
    lacking=$(echo $lacking)
    if command -v apt-get >/dev/null 2>&1 && test "$(id -u)" = 0; then
        echo "installing: $lacking" >&2
        apt-get update -qq
        # shellcheck disable=SC2086
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $packages >/dev/null
    else
        echo "quickstart.sh: missing: $lacking (install these packages, or run as root where apt is)" >&2
        exit 1
    fi
}

set_up_extras() {
    command -v mpicc >/dev/null 2>&1 && pkg-config --exists openblas && return 0
    command -v apt-get >/dev/null 2>&1 && test "$(id -u)" = 0 || return 0
    echo "installing: $extras" >&2
    apt-get update -qq || true
    for package in $extras; do
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$package" \
            >/dev/null || echo "quickstart.sh: tests go without $package" >&2
    done
}

with_mpi() {
    command -v mpicc >/dev/null 2>&1 && echo --with-mpi
    return 0
}

jobs=$(nproc 2>/dev/null || echo 2)

# configured FOLDER OPTION...
configured() {
    folder=$1
    shift
    test -x configure || autoreconf -i
    mkdir -p "$folder"
    test -f "$folder/Makefile" || (cd "$folder" && ../configure --quiet "$@")
}

build() {
    configured build "$@"
    make -C build -s -j"$jobs"
}

# Tests of what threads and forked ranks share; but real_waits.t, whose programs race on purpose.
check_threads() {
    tests=
    for test in host_collectives host_failures host_segments host_shm host_streams host_update \
        real_agree real_jitter real_oracle real_order; do
        tests="$tests tests/$test.t"
    done
    configured build-tsan --enable-werror --enable-tsan
    # shellcheck disable=SC2086
    make -C build-tsan -s -j"$jobs" $tests &&
        make -C build-tsan -s -j"$jobs" check-TESTS TESTS="$tests"
}

case ${1:-run} in
run)
    set_up
    build
    ./build/unshard sim llama3-8b
    ;;
check)
    set_up
    set_up_extras
    # shellcheck disable=SC2046
    build --enable-werror $(with_mpi)
    status=0
    make -C build -s -j"$jobs" check || status=$?
    make -C build -s check-summary
    check_threads || status=$?
    exit "$status"
    ;;
*)
    echo "usage: ./quickstart.sh [check]" >&2
    exit 2
    ;;
esac
