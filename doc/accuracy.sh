#!/bin/sh
# Writes doc/accuracy.md anew: what stands above its tables, then the tables of a table of measured
# runs. usage: UNSHARD=build/unshard sh doc/accuracy.sh ../shared/data/measured.csv
set -e
page=$(dirname "$0")/accuracy.md
table=$1
{
    sed '/^<!-- tables -->$/q' "$page"
    echo
    "$UNSHARD" validate "$table" --markdown
} >"$page.new"
mv "$page.new" "$page"
