#!/bin/sh
# Bugs put into packing on purpose: each has to be caught by a test. For developers and .ci/run.
#
#   tests/mutate_pack.sh planted      bugs that a person would make
#   tests/mutate_pack.sh every N      of those that tests/mutate_pack.awk makes, each N-th; those that
#                                     live have to stand in tests/mutate_pack.txt, with the reason
#
# JOBS: how many at once (2). Exit code 1: a mutant lives that is not explained.
cd "$(dirname "$0")/.." || exit 1
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
cc="${CC:-gcc} -std=gnu11 -O1 -w -ffp-contract=off -DPACK_INLINE=HOST_DEVICE"
cxx="${CXX:-g++} -std=gnu++17 -O1 -w -ffp-contract=off -DPACK_INLINE=HOST_DEVICE
    -fsanitize=shift,pointer-overflow -fsanitize-undefined-trap-on-error"
files="gpu/pack_body.h gpu/pack_memory.h gpu/pack_element.h gpu/pack_table.c"

# What no mutant touches.
mkdir "$tmp/base" && for file in tests/cuda_shim.c tests/pack_table.c tests/pack_post.c \
    tests/pack_rig.c tests/pack_watch.c tests/slow_cast.c tests/tap.c src/arena.c src/dtype.c src/err.c; do
    $cc -I. -c $file -o "$tmp/base/$(basename $file .c).o" || exit 1
done
shared="$tmp/base/pack_rig.o $tmp/base/pack_watch.o $tmp/base/slow_cast.o $tmp/base/tap.o
    $tmp/base/arena.o $tmp/base/dtype.o $tmp/base/err.o"

# here FILE: the mutant's, or ours.
here() { test -f "$dir/$1" && echo "$dir/$1" || echo "$1"; }
compile() {
    $cc "-I$dir" -I. -c "$(here "$1")" -o "$dir/$(basename "$1" .c).o"
}
# passes NAME OBJECT: this program, with the mutant's packing
passes() {
    $cxx $2 "$dir/pack_table.o" "$dir/host_pack.o" $shared -lm -o "$dir/$1" &&
        timeout 60 "$dir/$1" >"$dir/$1.log" 2>&1
}
# killer DIR: which test fails with DIR/gpu before gpu; "nobody"
killer() {
    dir=$1
    compile gpu/pack_table.c && compile gpu/host_pack.c &&
        $cxx "-I$dir" -I. -include tests/cuda_shim.cuh -x c++ -c "$(here gpu/cuda_pack.cu)" \
            -o "$dir/kernels.o" || { echo "the compiler"; return; }
    passes table "$tmp/base/pack_table.o" || { echo pack_table; return; }
    passes shim "$tmp/base/cuda_shim.o $dir/kernels.o" || { echo cuda_shim; return; }
    for name in pack_vectors pack_random; do
        compile tests/$name.c && passes $name "$dir/$name.o" || { echo $name; return; }
    done
    passes post "$tmp/base/pack_post.o" && echo nobody || echo pack_post
}

# planted: "FILE<TAB>NAME<TAB>sed script" for each
planted() {
    sed -e '/^#/d' -e '/^$/d' tests/mutate_pack_planted.txt
}
plant() (
    mkdir -p "$tmp/$1/gpu"
    planted | sed -n "$1p" >"$tmp/$1/bug"
    IFS='	' read -r file name script <"$tmp/$1/bug"
    sed "$script" "$file" >"$tmp/$1/$file"
    cmp -s "$file" "$tmp/$1/$file" && { echo "$name: nothing to change in $file"; exit; }
    echo "$name: $(killer "$tmp/$1" 2>/dev/null)"
)

mutants() {
    for file in $files; do
        awk -f tests/mutate_pack.awk $file | sed "s|^|$file	|"
    done | awk -v every="$every" 'NR % every == 1 || every == 1'
}
mutate() (
    mkdir -p "$tmp/$1/gpu"
    sed -n "$1p" "$tmp/mutants" >"$tmp/$1/mutant"
    IFS='	' read -r file line _ <"$tmp/$1/mutant"
    awk -v mutant="$(cat "$tmp/$1/mutant")" 'BEGIN { split(mutant, m, "\t") }
        NR == m[2] { $0 = substr($0, 1, m[3] - 1) m[5] substr($0, m[3] + m[4]) } { print }' \
        "$file" >"$tmp/$1/$file"
    echo "$file: $(sed -n "${line}s/^ *//p" "$tmp/$1/$file"): $(killer "$tmp/$1" 2>/dev/null)"
    rm -rf "${tmp:?}/$1"
)

# each COMMAND N: COMMAND of 1 to N, JOBS at once
each() {
    for job in $(seq "${JOBS:-2}"); do
        for i in $(seq "$job" "${JOBS:-2}" "$2"); do "$1" "$i"; done &
    done
    wait
}

case $1 in
planted) each plant "$(planted | grep -c .)" >"$tmp/out" ;;
every)
    every=$2
    mutants >"$tmp/mutants"
    each mutate "$(grep -c . "$tmp/mutants")" >"$tmp/out" ;;
*) sed -n 's/^# \{0,1\}//p' "$0" | head -n 8; exit 2 ;;
esac
cat "$tmp/out"
grep ': nobody$' "$tmp/out" | sed 's/: nobody$//' >"$tmp/living"
grep -v -x -F -f tests/mutate_pack.txt "$tmp/living" >"$tmp/unexplained"
echo "$(grep -c . "$tmp/out") mutants, $(grep -c . "$tmp/living") live, $(grep -c . "$tmp/unexplained") of them unexplained"
test ! -s "$tmp/unexplained" && ! grep -q 'nothing to change' "$tmp/out"
