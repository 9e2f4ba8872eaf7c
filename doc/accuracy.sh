#!/bin/sh
# Writes doc/accuracy.md anew: what stands above its tables, then the tables of a table of measured
# runs, by presets, without each term of the cost model, and by constants that are fitted to its
# calibration runs.
# usage: UNSHARD=build/unshard sh doc/accuracy.sh ../shared/data/measured.csv
set -e
page=$(dirname "$0")/accuracy.md
table=$1
# The platforms that have figures, and a line a term.
without_terms() {
    terms=$("$UNSHARD" help validate | sed -n '/^  --without/,/^  --[^w]/p' | tr '\n' ' ' |
        tr ';' '\n' | sed -n 's/^ *\([a-z-]*\):.*/\1/p')
    "$UNSHARD" validate "$table" --markdown | means | awk '{
        head = head " " $1 " |"; line = line " --- |"; row = row " " $2 " |"
    } END { printf "\n| mean error %% without |%s\n| --- |%s\n| nothing |%s\n", head, line, row }'
    for term in $terms; do
        "$UNSHARD" validate "$table" --markdown --without "$term" | means |
            awk -v term="$term" '{ row = row " " $2 " |" } END { print "| " term " |" row }'
    done
}
means() { # of the first table: platform and mean
    awk -F ' *[|] *' '/^$/ { exit } NR > 2 && $4 != "-" && $2 !~ / / { print $2, $4 }'
}

fitted=$(mktemp -d)
trap 'rm -r "$fitted"' EXIT

# The first COUNT tables of what validate says.
tables() { # COUNT ARGUMENTS
    count=$1
    shift
    "$UNSHARD" validate "$table" --markdown "$@" | awk -v n="$count" '/^$/ { n-- } n > 0'
}
{
    sed '/^<!-- tables -->$/q' "$page"
    printf '\n## By presets\n\n'
    tables 3
    without_terms
    printf '\n## By fitted constants\n\n`unshard calibrate --from runs` says:\n\n```\n'
    "$UNSHARD" calibrate --from runs "$table" -o "$fitted" | grep -v 'is not fitted' |
        sed -e 1d -e "s#$fitted/##"
    printf '```\n\nRuns of the test split, which no fit has seen:\n\n'
    tables 1 --calibrated "$fitted" --split test
    printf '\nAll of them:\n\n'
    tables 2 --calibrated "$fitted"
} >"$page.new"
mv "$page.new" "$page"
