#!/bin/sh
# Writes doc/accuracy.md anew: what stands above its tables, then the tables of a table of measured
# runs, then its mean errors without each term of the cost model.
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
    awk -F ' *[|] *' '/^$/ { exit } NR > 2 && $4 != "-" { print $2, $4 }'
}

{
    sed '/^<!-- tables -->$/q' "$page"
    echo
    "$UNSHARD" validate "$table" --markdown
    without_terms
} >"$page.new"
mv "$page.new" "$page"
