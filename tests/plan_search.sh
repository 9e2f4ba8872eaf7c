#!/bin/sh
# unshard plan without --units: what a search finds is a plan that anybody could have typed, the answer
# is the same on any number of threads, and options bound what is tried. That it is the best is held
# by search.c.
# shellcheck disable=SC2154,SC2317  # tmp comes from tap.sh; the checks are called by ok
. "$top_srcdir/tests/tap.sh"

# plan ARGUMENTS: leaves $tmp/out, $tmp/err and $code
plan() {
    code=0
    "$UNSHARD" plan "$@" --no-db >"$tmp/out" 2>"$tmp/err" || code=$?
}
is() { test "$1" = "$2" || { echo "# got '$1', want '$2'"; return 1; }; }
same() { diff "$1" "$2" | sed 's/^/# /' | grep . && return 1; return 0; }
said() { grep -qF -- "$1" "$tmp/err" || { sed 's/^/# /' "$tmp/err"; return 1; }; }
has() { grep -q -- "$1" "$tmp/out" || { sed 's/^/# /' "$tmp/out"; return 1; }; }
complete() { plan llama3-8b --layers 2 "$@"; is "$code $(grep -c '^best:' "$tmp/out")" "0 1"; }

plan llama3-8b --layers 4
ok "a search is what plan does by default" has '^searched grouping, tail, reshard, prefetch '
ok "the plan that one would have had is there" has 'torchtitan'
ok "something is to be taken" has '^best: '
plan llama3-8b --layers 3 --search grouping,tail
ok "of few blocks the best is optimal" has 'the first is optimal'
plan llama3-8b --layers 4 --reshard no --prefetch 1
ok "what is given is not searched" has '^searched grouping, tail ('
plan llama3-8b --layers 4 --units block --search reshard
ok "and what is asked for is" has '^searched reshard ('
plan llama3-8b --layers 4 --search tail,fork
ok "an axis that is none is exit code 2" is "$code" 2
ok "with the words that there are" said "'fork'"

plan llama3-8b --layers 8 --jobs 1
cp "$tmp/out" "$tmp/one"
plan llama3-8b --layers 8 --jobs 4
ok "four threads find what one does" same "$tmp/one" "$tmp/out"

plan llama3-8b --layers 8 --max-units 3 --json
few() { # all rows but the one of torchtitan
    sed -n 's/^[[:blank:]]*"units":[[:blank:]]*\([0-9]*\),*$/\1/p' "$tmp/out" |
        awk '{ n++; many += $1 > 3 } END { exit many > 1 || n < 2 }'
}
ok "units are as few as asked for" few

plan llama3-8b --layers 2 --search ac
ok "where no axis of a space is varied, none is named" has '^searched: 4 plans, 4 of them simulated'

# --- options of a search
# refused WHY ARGUMENTS: exit code 2, one line that says so, and no answer
refused() {
    why=$1
    shift
    plan llama3-8b --layers 2 "$@"
    is "$code $(wc -l <"$tmp/err") $(wc -c <"$tmp/out")" "2 1 0" && said "$why"
}
while read -r option value; do
    ok "--$option beside plans that are named is refused" refused \
        "--$option is for a search" --units block "--$option" "$value"
    ok "and where they are asked about" refused \
        "--$option is for a search" --units block --find batch "--$option" "$value"
    ok "but not where something is varied" complete --units block --search tail "--$option" "$value"
done <<END
judge milp-like
fixed lm_head
max-units 3
END
ok "--jobs changes no answer" complete --units block --jobs 1
ok "modules that are fixed are there" refused "did you mean 'lm_head'?" --fixed lm_hed
ok "each of them" refused "matches 'nonsense'; they are called like 'model.layers" \
    --fixed 'model.*,nonsense'
ok "also in a question" refused "matches 'nonsense'" --fixed nonsense --find seq
ok "and in halves" refused "matches 'model.layers.0'" --search split --fixed model.layers.0

# --- FSDP1
unsearched() {
    plan llama3-8b --layers 2 "$@"
    is "$code $(wc -l <"$tmp/err") $(grep -c '^best: 1,.* block' "$tmp/out")" "0 1 1" &&
        said "not searched, schemes are compared: FSDP1 wraps one module" &&
        ! grep -q '^searched' "$tmp/out"
}
while read -r arguments; do
    # shellcheck disable=SC2086
    ok "FSDP1 is not searched, and that is said: $arguments" unsearched --system fsdp1 $arguments
done <<END

--record-stream no
--search prefetch
--units block --search grouping
--units block --search reshard --record-stream no
--ac full --find batch --memory 40GiB
END
while read -r option value; do
    plan llama3-8b --layers 2 --system fsdp1 "--$option" "$value"
    ok "--$option, which schemes know nothing of, is said to be left out" said \
        "schemes are compared, without --$option:"
done <<END
judge milp-like
fixed lm_head
END
plan llama3-8b --layers 2 --system fsdp1 --max-units 2
ok "few units are asked of schemes as well" is "$(grep -c '^best: 1,.* whole' "$tmp/out") \
$(grep -c '^ *[>0-9*]* *[*=]* *block  ' "$tmp/out")" "1 0"
plan llama3-8b --layers 2 --system fsdp1,fsdp2
ok "beside FSDP2, which is, it is compared" is "$code $(grep -c 'fsdp1 --units block ' "$tmp/out")" "0 1"
ok "from the same start" is "$(grep -c 'fsdp2 --units block ' "$tmp/out")" 1
ok "and what was searched is said" has '^searched grouping'
plan llama3-8b --memory 10GiB
ok "nothing fits: exit code 1" is "$code" 1
ok "and a line says what is in the way" said "nothing fits into 10.0 GiB; the smallest"

# --- what is kept
UNSHARD_DB=$tmp/kept.db
kept() { "$UNSHARD" query --csv "select $1" | tr -d '\r' | tail -n 1; }
keep() { "$UNSHARD" plan llama3-8b --layers 4 --ac none,full --keep "$@" >"$tmp/out" 2>"$tmp/err"; }
"$UNSHARD" plan llama3-8b --layers 2 >"$tmp/out" 2>"$tmp/err"
ok "without --keep no candidate is kept" is "$(kept "count(*) from v_candidate")" 0
ok "--keep all keeps every plan" keep all --json
judged=$(sed -n 's/^.*"evaluated":[^0-9]*\([0-9]*\).*$/\1/p' "$tmp/out")
ok "that was judged" is "$(kept "count(*) from v_candidate")" "$judged"
ok "two combinations are two searches" is "$(kept "count(distinct search) from v_candidate")" 2
ok "which say how they differ" is "$(kept "group_concat(distinct substr(options, 1, 9))
    from v_candidate")" '"--ac none,--ac full"'
ok "the first of each is the fastest that fits" is "$(kept "count(*) from v_candidate join (
    select search, min(step_ns) as best from v_candidate where fits group by 1) using (search)
    where rank = 1 and step_ns = best")" 2
ok "some were placed, and reserve more than they request" is "$(kept "count(*) > 10 and
    min(reserved_bytes >= peak_bytes) from v_candidate where reserved_bytes")" 1
ok "what is on the front is beaten by none" is "$(kept "count(*) from v_candidate as a where on_front
    and exists (select * from v_candidate as b where b.search = a.search and b.fits and
    b.step_ns < a.step_ns and b.peak_bytes < a.peak_bytes)")" 0
front=$(kept "sum(on_front) from v_candidate")
ok "--keep front keeps the front alone" keep front
ok "of each search" is "$(kept "count(*) - $judged = $front from v_candidate")" 1
ok "and says how many" has " and $front candidates stored in "
ok "they are of the same answer as its runs" is "$(kept "count(distinct plan_group)
    from v_candidate join v_run using (plan_group)")" 2
plan llama3-8b --layers 2 --keep all
ok "--keep without a history is exit code 2" is "$code" 2
ok "which says why" said "--keep keeps plans in the run history"
"$UNSHARD" plan llama3-8b --layers 2 --units block --keep all >"$tmp/out" 2>"$tmp/err"
ok "so is --keep beside plans that are named" said "--keep is for a search"

ok "a start that has too many units" keep front --max-units 3
ok "is no run either" is "$(kept "max(units) from v_run where plan_group = (
    select max(plan_group) from v_run)")" 3

# --- a plan that goes by two names
hashes() { sed -n 's/^.*"program_hash":[^"]*"\([0-9a-f]*\)".*$/\1/p' "$tmp/out"; }
units() { sed -n 's/^.*"scheme":[^"]*"\(.*\)",$/\1/p' "$tmp/out"; }
while IFS='|' read -r units arguments; do
    # shellcheck disable=SC2086
    plan llama3-8b --layers 4 $arguments --json
    ok "$arguments: each plan is listed once" is "$(hashes | sort | uniq -d)" ""
    ok "with its name" is "$(units | grep -cx "$units")" 1
done <<END
torchtitan|--search tail
torchtitan|--search grouping
torchtitan|--search tail --judge milp-like
whole|--units whole --search grouping,prefetch
block|--units block --search grouping --memory 30GiB
block|--units block --system fsdp1 --search grouping
END
plan llama3-8b --layers 2 --search tail,allocator --json
ok "but in each search" is "$(units | grep -cx torchtitan)" 2
plan llama3-8b --layers 2 --units 'block*2,block*4' --json
ok "and as often as it was named" is "$(hashes | wc -l) $(hashes | uniq | wc -l)" "2 1"

# --- what is claimed
status() { sed -n 's/^[[:blank:]]*"status":[[:blank:]]*"\([a-z]*\)".*/\1/p' "$tmp/out"; }
plan llama3-8b --layers 2 --memory 1GiB --search tail --json
ok "where nothing fits nothing is optimal" is "$(status)" bounded
plan llama3-8b --layers 2 --system fsdp1 --units block --search tail --json
ok "nor where schemes are compared" is "$(status)" bounded
plan llama3-8b --layers 2 --search tail --json
ok "where all was looked at it is" is "$(status)" optimal
plan gpt2 --layers 2 --memory 1900MiB --json
ok "but where the first needs retries, whose time was not searched" is "$(status)" bounded
plan llama3-8b --layers 8 --json
gap=$(sed -n 's/^[[:blank:]]*"gap_pct":[[:blank:]]*\([0-9.]*\).*/\1/p' "$tmp/out")
plan llama3-8b --layers 8
slower() { tr -s ' \n' ' ' <"$tmp/out" | sed -n \
    's/.*; the first is at most \([0-9.]*\) % slower than the fastest of these can be .*/\1/p'; }
near() { awk -v told="$1" -v gap="$2" 'BEGIN { exit !(told >= gap && told < gap + 0.1001 && gap > 0) }'; }
ok "else how much slower the first can be than the fastest" near "$(slower)" "$gap"
plan llama3-8b --layers 2 --search tail --max-units 1
ok "a plan of more units than asked for is no answer" is "$code $(wc -c <"$tmp/out")" "1 0"
plan llama3-8b --json
room() { # bytes of the rows that fit, and the limit that they fit into
    sed -n 's/^[[:blank:]]*"total_bytes":[[:blank:]]*\([0-9]*\),*$/\1/p' "$tmp/out" |
        awk '{ n++; bad += $1 > 0.92 * 84935705600 } END { exit bad > 1 || n < 2 }'
}
ok "without a limit some of the GPU stays free" room

# What fits into less fits into more, also where only a plan that none of the fastest is does.
fitting=
for memory in 21GiB 23GiB 23.2GiB 23.4GiB; do
    plan llama3-8b --layers 4 --memory $memory
    fitting="$fitting$code "
done
ok "what fits into some memory fits into more" is "$fitting" "1 0 0 0 "

# What the first plan has that searched ones cannot match: units by name, which are several modules.
plan llama3-8b --layers 4 --units torchtitan --no-reshard 'model.norm? lm_head' --search grouping
ok "a search begins with units that stay gathered, whatever their names" has '^searched grouping'

plan llama3-8b --layers 4 --gpus 16384 --memory 1GiB
ok "more GPUs than there can be are not looked at" is "$code $(grep -c 'nor 1,048,576 GPUs are' "$tmp/out")" "1 1"
plan llama3-8b --layers 4 --gpus 8 --nodes 1 --memory 1GiB
ok "nor others where nodes are given" has 'neither smaller batches nor checkpointing'
plan llama3-8b --layers 3 --search grouping --judge milp-like --json
ok "what was not simulated is not proved" is \
    "$(sed -n 's/^[[:blank:]]*"\(status\|gap_pct\)":[[:blank:]]*"*\([a-z0-9.]*\)"*,*$/\2/p' "$tmp/out" | tr '\n' ' ')" \
    "bounded null "

# --- retries of the allocator
# retried: ranks of the rows that have some, in JSON and as the text says
retried() {
    plan gpt2 --layers 2 --memory "$1" --json
    awk -F'[:,]' '/"rank":/ { rank = $2 } /"needs_retries":.*true/ { printf "%d ", rank }' "$tmp/out"
}
told() {
    plan gpt2 --layers 2 --memory "$1"
    tr -s ' \n' ' ' <"$tmp/out" |
        sed -n 's/.* take time, are needed by \([0-9, ]*\)\..*/\1 /p' | tr -d ','
}
none_retried() { has '^ *1  yes .* GiB  searched' && ! grep -q '^ *1  yes .*retries' "$tmp/out"; }
for memory in 1800MiB 1900MiB 2000MiB 3GiB; do
    ok "into $memory: plans that need retries are told" is "$(told $memory)" "$(retried $memory)"
    plan gpt2 --layers 2 --memory "$memory"
    best=$(sed -n 's/^best: \([0-9]*\),.*/\1/p' "$tmp/out")
    ok "and of the best it is said" is \
        "$(tr -s ' \n' ' ' <"$tmp/out" | grep -c 'only with retries of the allocator')" \
        "$(told $memory | tr ' ' '\n' | grep -cx "$best")"
done
ok "of some plans some need them" test "$(retried 2000MiB | wc -w)" -gt 0
plan gpt2 --layers 2 --memory 2000MiB --units block --find batch
ok "of an answer's plan they are told" has '^ *1  yes .* GiB  retries'
plan gpt2 --layers 2 --memory 3GiB --units block --find batch
ok "where there are some" none_retried
plan gpt2 --layers 2 --memory 1700MiB
ok "and of what would fit" has '^fits with: .* GiB  retries$'
needed() { tr -s ' \n' ' ' <"$1" | grep -q 'needs [0-9.]* GiB without retries of the allocator'; }
ok "where nothing fits it is told what is needed without them" needed "$tmp/err"
ok "in the page too" needed "$tmp/out"
plan gpt2 --layers 2 --memory 1GiB --find batch
ok "and where a question has no answer" needed "$tmp/err"

# --- JSON, and each row again by itself
if command -v python3 >/dev/null; then
    cat >"$tmp/check.py" <<'END'
import json, subprocess, sys

program, arguments = sys.argv[1], sys.argv[2:]
plan = json.loads(subprocess.run([program, "plan", *arguments, "--json", "--no-db"],
                                 capture_output=True, text=True).stdout)
def typed(options):
    return [word for key, value in options.items()
            for word in ("--" + key.replace("_", "-"), str(value))]
checks = {
    "what was looked at is counted": plan["evaluated"] > 20 and plan["space"] > plan["evaluated"],
    "it says whether the answer is optimal": plan["status"] in ("optimal", "bounded"),
    "or how far it can be off": (plan["status"] == "optimal") == (plan["gap_pct"] == 0),
    "best is a rank": plan["best"] in [row["rank"] for row in plan["rows"]],
}
for number, row in enumerate(plan["rows"]):
    sim = json.loads(subprocess.run(
        [program, "sim", arguments[0], *typed(row["options"]), "--json", "--no-db"],
        capture_output=True, text=True).stdout)
    checks["row %d is what sim says of its options: %s" % (number + 1, row["scheme"])] = (
        sim["step_ns"] == row["step_ns"] and sim["program_hash"] == row["program_hash"])
for name, good in checks.items():
    print("good" if good else "bad", name)
END
    for case in "llama3-8b --layers 6" "llama3-8b --layers 6 --gpus 64 --ac full --seq 2048" \
        "gpt2 --layers 4 --batch 4" "llama3-8b --layers 2 --prefetch 100000" "llama3-8b --layers 2 --search grouping,split,reshard"; do
        # shellcheck disable=SC2086
        python3 "$tmp/check.py" "$UNSHARD" $case >"$tmp/checks" 2>"$tmp/err"
        while read -r outcome name; do
            ok "$case: $name" test "$outcome" = good
        done <"$tmp/checks"
        ok "$case: all was checked" test "$(wc -l <"$tmp/checks")" -gt 6
    done
else
    skip "no python3 to read JSON with"
fi
done_testing
