#!/bin/sh
# The command line: exit codes, what goes to stdout and what to stderr, hints, colour, and the JSON
# that scripts rely on.
# shellcheck disable=SC2154,SC2317  # tmp comes from tap.sh; the checks are called by ok
. "$top_srcdir/tests/tap.sh"
unset NO_COLOR

# run ARGUMENTS: leaves $tmp/out, $tmp/err and $code
run() {
    code=0
    "$UNSHARD" "$@" >"$tmp/out" 2>"$tmp/err" || code=$?
}

exits() { # CODE ARGUMENTS
    want=$1
    shift
    run "$@"
    test "$code" = "$want" || { echo "# exit code $code: $(cat "$tmp/err")"; return 1; }
}

# What was said is one line, names the command and contains the words; nothing is on stdout.
complains() { # CODE WORDS ARGUMENTS
    want=$1 words=$2
    shift 2
    exits "$want" "$@" || return 1
    if test -s "$tmp/out" || test "$(wc -l <"$tmp/err")" != 1 ||
        ! grep -q '^unshard' "$tmp/err" || ! grep -qF -- "$words" "$tmp/err"; then
        sed 's/^/# /' "$tmp/err"
        return 1
    fi
}

# field NAME: a number or string that stands once in the last JSON output
field() {
    sed -n "s/^[[:blank:]]*\"$1\":[[:blank:]]*\"\{0,1\}\([^\",]*\).*/\1/p" "$tmp/out" | head -n 1
}
is() { test "$1" = "$2" || { echo "# got '$1', want '$2'"; return 1; }; }
same() { cmp -s "$1" "$2" || { echo "# $1 and $2 differ"; return 1; }; }

# --- asking for what does not exist: exit code 2 and what to do about it
ok "no command" complains 2 "see 'unshard help'"
ok "an unknown command gets the nearest one" complains 2 "did you mean 'sim'?" smi
ok "an option before any command" complains 2 "after a command" --json
ok "no model" complains 2 "no model" sim
ok "an unknown model gets the nearest one" complains 2 "did you mean 'llama3-8b'?" sim llama-8b
ok "a second model is too much" complains 2 "extra argument 'x'" sim llama3-8b x
ok "an unknown option gets the nearest one" complains 2 "did you mean '--gpus'?" \
    sim llama3-8b --gpu 4
ok "the beginning of an option gets that one" complains 2 "did you mean '--layers'?" \
    sim llama3-8b --lay 1
ok "an unknown letter" complains 2 "unknown option '-q'" sim llama3-8b -q
ok "an option of another command" complains 2 "takes no --no-db" explain llama3-8b --no-db
ok "a value that is missing" complains 2 "--gpus needs a value" sim llama3-8b --gpus
ok "a value that a switch does not take" complains 2 "--json takes no value" sim llama3-8b --json=1
ok "an unknown word gets the nearest one" complains 2 "did you mean 'always'?" sim x --color alway
ok "an unknown word gets all words" complains 2 "auto, yes, no" sim llama3-8b --reshard maybe
ok "a count that is none" complains 2 "--gpus: 'many'" sim llama3-8b --gpus many
ok "a negative count" complains 2 "--gpus: '-8'" sim llama3-8b --gpus -8
ok "a count behind a word" complains 2 "none, full, op, or every:K" sim llama3-8b --ac every
ok "that is none" complains 2 "--ac: 'two' is not a whole number" sim llama3-8b --ac every:two
ok "zero GPUs" complains 2 "--gpus: 0 is too small, at least 1" sim llama3-8b --gpus 0
while read -r option value most; do
    ok "$option $value is too large" complains 2 "--$option: $value is too large, at most $most" \
        sim llama3-8b "--$option" "$value"
done <<END
gpus 1048577 1048576
gpus 18446744073709551616 1048576
nodes 1048577 1048576
accum 1025 1024
layers 99999999999999999999 4096
batch 18446744073709551616 18446744073709551615
seq 18446744073709551616 18446744073709551615
prefetch 18446744073709551616 18446744073709551615
END
ok "nodes that do not divide the GPUs" complains 2 "nodes" sim llama3-8b --gpus 8 --nodes 3
ok "no memory at all" complains 2 "'0' is too small" sim llama3-8b --memory 0
for size in 18446744073709551616 99999999TiB 99999999.5TiB; do
    ok "$size is too much memory" complains 2 "--memory: '$size' is too large" \
        sim llama3-8b --memory $size
done
ok "a size without its unit" complains 2 "72GiB" sim llama3-8b --memory 72Gb
ok "an unknown cluster gets the nearest one" complains 2 "'h100-sxm'" \
    sim llama3-8b --cluster h100-sx
ok "a pattern that matches nothing" complains 2 "'model.layer.*'" \
    sim llama3-8b --units 'model.layer.*'
ok "nothing to explain" complains 2 "no run or model" explain
ok "a word that model does not know" complains 2 "did you mean 'list'?" model lst
ok "model show without a model" complains 2 "no model" model show
ok "model list with a model" complains 2 "extra argument" model list llama3-8b
ok "bench without a benchmark" complains 2 "usage: unshard bench host" bench
ok "help of an unknown command" complains 2 "did you mean 'cluster'?" help clustr

# --- files that make no sense: exit code 4, the file and the place
config='"model_type": "llama", "hidden_size": 64, "intermediate_size": 160, "num_hidden_layers": 2,
 "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 256'
echo "{$config}" >"$tmp/good.json"
echo "{$config" >"$tmp/cut.json"
echo '{"model_type": "llama", "hidden_size": 64}' >"$tmp/missing.json"
echo '{"model_type": "lama"}' >"$tmp/family.json"
echo "{$config}" | sed 's/"num_attention_heads": 4/"num_attention_heads": 5/' >"$tmp/heads.json"
echo "{$config}" | sed 's/"vocab_size": 256/"vocab_size": 9007199254740991/' >"$tmp/huge.json"
echo '{"schema": "unshard.cluster/1", "name": "x"}' >"$tmp/cluster.json"

ok "a config.json is a model" exits 0 sim "$tmp/good.json" --cluster toy
mkdir "$tmp/folder" && cp "$tmp/good.json" "$tmp/folder/config.json"
ok "so is its folder" exits 0 sim "$tmp/folder" --cluster toy
ok "a truncated file" complains 4 "$tmp/cut.json: line" sim "$tmp/cut.json"
ok "a missing key" complains 4 "$tmp/missing.json" sim "$tmp/missing.json"
ok "an unknown family is refused by name" complains 4 "'lama'" sim "$tmp/family.json"
ok "heads that do not divide" complains 4 "$tmp/heads.json" sim "$tmp/heads.json"
ok "sizes past 64 bits" complains 4 "$tmp/huge.json" sim "$tmp/huge.json"
ok "a cluster without numbers" complains 4 "$tmp/cluster.json" \
    sim llama3-8b --cluster "$tmp/cluster.json"

# --- sizes that no GPU can hold: the model and the options; whose fault it is, is the exit code
while read -r seq batch because; do
    for model in llama3-8b "$tmp/good.json"; do
        want=4
        test "$model" != llama3-8b || want=2
        ok "too large at --seq $seq --batch $batch, exit code $want" complains $want \
            "$model is too large with --seq $seq --batch $batch: $because" \
            sim "$model" --seq "$seq" --batch "$batch"
    done
done <<END
1000000000000 1 a part of the step passes 2^62
1024 1000000000000000 a part of the step passes 2^62
END
ok "a tensor past any memory" complains 2 "one of its tensors has 143.3 TiB" \
    sim llama3-8b --seq 1024 --batch 300000
ok "of a model file" complains 4 "$tmp/good.json is too large with --seq 1024 --batch 1000000000" \
    sim "$tmp/good.json" --seq 1024 --batch 1000000000

# --- names from outside: one line, and nothing that a terminal obeys
escape=$(printf '\033')
odd=$tmp/$(printf 'odd\n\033[31m\302\233name')
mkdir "$odd" && cp "$tmp/good.json" "$odd/config.json"
long=$tmp/$(printf '%0200d' 0)
mkdir "$long" && cp "$tmp/good.json" "$long/config.json"
cat >"$tmp/odd.json" <<END
{"schema": "unshard.cluster/1", "base": "h100-sxm", "name": "odd\\n\\u001b[31m\\u009bname",
 "description": "line 1\\nline 2 \\u001b[31mred"}
END
# tame ARGUMENTS: the name is in the output, but what it could do is not
tame() {
    exits 0 "$@" && grep -qF 'odd??[31m?name' "$tmp/out" && ! grep -qF "$escape" "$tmp/out" &&
        ! grep -q "$(printf '\302\233')" "$tmp/out" && ! grep -q '^\(line 2\|.\[31m\)' "$tmp/out"
}
ok "sim prints a tame model name" tame sim "$odd" --cluster toy
ok "and a tame cluster name" tame sim llama3-8b --cluster "$tmp/odd.json"
ok "so does explain, in a comment" tame explain "$odd" --program
ok "and model show" tame model show "$odd"
ok "and cluster show" tame cluster show "$tmp/odd.json"
ok "a message is tame" complains 4 'odd??[31m' sim "$odd" --seq 1000000000000
run sim "$odd" --cluster "$tmp/odd.json" --json
# shellcheck disable=SC1003
ok "in JSON names stay what they are" grep -qF '"odd\n\u001b[31m' "$tmp/out"
run model show "$long"
ok "a long name is cut at its beginning" grep -q '^\.\.\.0\{77\}:' "$tmp/out"

# --- results on stdout, nothing else anywhere
ok "a step that fits" exits 0 sim llama3-8b
ok "stderr stays empty" test ! -s "$tmp/err"
run sim llama3-8b --no-db
cp "$tmp/out" "$tmp/first"
run sim llama3-8b --no-db
ok "two runs give equal bytes" same "$tmp/out" "$tmp/first"
run sim --gpus 16 llama3-8b --batch 2 --no-db
cp "$tmp/out" "$tmp/first"
run sim --batch=2 --no-db --gpus=16 -- llama3-8b
ok "options stand before or after the model" same "$tmp/out" "$tmp/first"

run sim llama3-8b --json --no-db
cp "$tmp/out" "$tmp/first"
# shellcheck disable=SC2046
run sim llama3-8b --json --no-db $("$UNSHARD" help sim | awk '
    /^  --/ { name = $1 } /\[.*\]$/ { sub(/.*\[/, ""); sub(/\]$/, ""); print name, $0 }')
ok "the defaults are what help says" same "$tmp/out" "$tmp/first"

if test -w /dev/full; then
    full() { code=0; "$UNSHARD" "$@" >/dev/full 2>"$tmp/err" || code=$?; is "$code" 4; }
    ok "output that cannot be written is an error" full sim llama3-8b
fi
closed() { code=0; "$UNSHARD" "$@" >&- 2>"$tmp/err" || code=$?; is "$code" 4; }
ok "so is a closed output" closed sim llama3-8b
ok "which is said" grep -q 'cannot write the result' "$tmp/err"

# --- colour
escapes() { grep -q "$(printf '\033')" "$tmp/out"; }
no_escapes() { ! escapes; }
run sim llama3-8b
ok "no colour into a pipe" no_escapes
run sim llama3-8b --color always
ok "colour where it is asked for" escapes
# terminal NAME=VALUE...: the same on a terminal of script(1)
terminal() {
    TERM=xterm env "$@" script -qec "'$UNSHARD' sim llama3-8b" /dev/null </dev/null >"$tmp/out" 2>&1
}
if script -qec true /dev/null </dev/null >/dev/null 2>&1; then
    terminal x=x
    ok "colour on a terminal" escapes
    terminal NO_COLOR=1
    ok "none with NO_COLOR" no_escapes
    terminal TERM=dumb
    ok "none on a dumb terminal" no_escapes
else
    skip "no terminal can be made here"
fi

# --- models
parameters() {
    run model show "$1" --json
    is "$(field parameters)" "$2"
}
while read -r model count; do
    ok "$model has $count parameters" parameters "$model" "$count"
done <<END
llama2-7b 6738415616
llama2-13b 13015864320
llama2-70b 68976648192
llama3-8b 8030261248
llama3-70b 70553706496
llama3-405b 405853388800
gpt2-xl 1557611200
mpt-125m 125311488
mpt-70b 64862437376
kda-1.75b 1750566144
simple-llm 3660288
pack-50m 50337808
copyin-500 1027614720
END
run model show mpt-7b --json
cp "$tmp/out" "$tmp/mpt.json"
run model show "$tmp/mpt.json" --json
ok "model show reads what it prints" same "$tmp/out" "$tmp/mpt.json"
ok "and sim does" exits 0 sim "$tmp/mpt.json"
run model show llama3-8b --layers 2 --lora r=16,targets=q_proj --json
cp "$tmp/out" "$tmp/lora.json"
run sim llama3-8b --layers 2 --lora r=16,targets=q_proj --json
hash=$(field program_hash)
run sim "$tmp/lora.json" --json
ok "a model with adapters is read as it was made" is "$(field program_hash)" "$hash"
sed 's/r=16/r=x/' "$tmp/lora.json" >"$tmp/bad.json"
ok "adapters that make no sense are the file's fault" \
    complains 4 "lora: r is 'x'" sim "$tmp/bad.json"
run model show llama3-8b --lora r=16 --states --json
ok "frozen parameters have neither gradients nor an optimizer" is \
    "$(field gradients_bytes) $(field optimizer_bytes)" "27262976 54525952"
run model show llama3-70b --states
ok "training states of llama3-70b take 1,129 GB" grep -q 'total *1,129 GB .* 16 bytes a parameter' \
    "$tmp/out"

# --- the collectives of a public trace: FSDP of llama-70B on 8 GPUs
# collectives: "kind elements dtype bytes count comm ranks reduction" a line
collectives() {
    awk -F'[:,]' '/"collectives"/ { inside = 1 }
        inside && /":/ && !/collectives/ { gsub(/[ \t"]/, "", $2); line = line " " $2 }
        inside && /"reduction"/ { print substr(line, 2); line = "" }' "$tmp/out"
}
run sim llama3-70b --gpus 8 --units block --reshard all-but-last --seq 8192 --batch 1 --json
collectives >"$tmp/got"
cat >"$tmp/want" <<END
all_gather 855654400 bf16 1711308800 159 shard 8 none
all_gather 2101354496 bf16 4202708992 1 shard 8 none
reduce_scatter 855654400 fp32 3422617600 80 shard 8 avg
reduce_scatter 2101354496 fp32 8405417984 1 shard 8 avg
END
ok "llama3-70b moves what the public trace shows" same "$tmp/got" "$tmp/want"

# --- shards: how parameters are cut
shards_of() { # MODEL RANKS PARAMETER: rows a rank, rows of the last, empty ranks
    run model show "$1" --shards "$2"
    sed -n '/^cut over/,$p' "$tmp/out" | awk -v name="$3" '$1 == name { print $2, $3, $4 }'
}
ok "1364 rows over 8 ranks are 171 each and 167" \
    is "$(shards_of simple-llm 8 layers.0.mlp_gate_up.weight)" "171 167 0"
ok "a first dimension of 1 leaves all ranks but one empty" \
    is "$(shards_of kda-1.75b 8 layers.0.self_attn.fp32.A_log)" "1 1 7"
ok "5 rows over 4 ranks are 2, 2, 1 and none" is "$({
    header='{"a.weight":{"dtype":"F32","shape":[5,4],"data_offsets":[0,80]}}'
    printf "\\$(printf %03o ${#header})\\000\\000\\000\\000\\000\\000\\000%s" "$header" >"$tmp/a.safetensors"
    shards_of "$tmp/a.safetensors" 4 a.weight
})" "2 1 1"

# --- memory: three reserved peaks and what is outside torch, against a limit
largest() {
    { grep peak_reserved_bytes "$tmp/out" | tr -dc "0-9\n"; field init_peak_bytes; } |
        sort -n | tail -n 1
}
agrees() {
    needed=$(($(largest) + $(field outside_bytes))) fits=false
    test "$needed" -gt "$(field memory_limit_bytes)" || fits=true
    is "$(field fits)" "$fits"
}
sums_up() {
    sum=$(awk -F'[:,]' '/by_class/ { inside = 1; next } /}/ && inside { exit } inside { sum += $2 }
        END { printf "%.0f", sum }' "$tmp/out")
    is "$sum" "$(field peak_allocated_bytes)"
}

run sim llama3-8b --json
ok "fits is what its parts say" agrees
ok "llama3-8b on 8 GPUs fits" is "$(field fits)" true
ok "classes sum to the allocated peak" sums_up
ok "the ten largest tensors at the peak are named" is "$(grep -c '"each_bytes"' "$tmp/out")" 10
ok "context and communicator are what is outside torch" \
    is $(($(field context_bytes) + $(field communicator_bytes))) "$(field outside_bytes)"
run sim llama3-8b
ok "in text too, equal ones as one" \
    grep -q ' 32 x 224.0 MiB   MLP gate, activation, 32 units$' "$tmp/out"
ok "above 92 % of the GPU it says what was seen there" \
    grep -q 'near the limit: measured runs of this kind are up to 25 % slower' "$tmp/out"
run sim llama3-8b --memory 96GiB
ok "and below it does not" is "$(grep -c 'near the limit' "$tmp/out")" 0
# pools ARGUMENTS: what the streams have reserved at the peak is the peak
pools() {
    run sim llama3-8b "$@" --json
    awk -F'[:,]' '/"peak_reserved_bytes"/ && !peak { peak = $2 }
        /reserved_by_pool/ { inside = 1; next } /}/ { inside = 0 } inside { sum += $2 }
        END { exit !(sum > 0 && sum == peak + 0) }' "$tmp/out"
}
for allocator in caching expandable; do
    ok "streams sum to the reserved peak, $allocator" pools --layers 2 --allocator "$allocator"
done
ok "also where memory was given back in between" pools --layers 8 --memory 30GiB
ok "as it was, in retries" test "$(field retries)" -gt 0
run sim llama3-405b --json
ok "a model that does not fit is simulated with exit code 0" is "$code" 0
ok "it says so" is "$(field fits)" false
ok "and fits is what its parts say" agrees
ok "on stderr in one line" is "$(grep -c 'does not fit' "$tmp/err") $(wc -l <"$tmp/err")" "1 1"
some='[0-9.]* [KMGT]iB'
ok "which tells where, at what, of how much, and what would do" grep -q "out of memory in \
initialisation at a request of $some, with $some there less $some outside .* reserve $some\$" \
    "$tmp/err"
ok "JSON has the first two as well" is "$(field step) $(($(field request_bytes) > 0))" "0 1"
run sim llama3-405b --json --memory 80GiB
ok "with an explicit limit the exit code is 1" is "$code" 1
ok "and the result is there" is "$(field memory_limit_bytes)" 85899345920
ok "a limit above the GPU's size is taken" exits 0 sim llama3-405b --memory 100TiB
ok "a limit below what is outside torch" exits 1 sim llama3-8b --memory 1MiB

# --- pages: lines, words and numbers
# narrow ARGUMENTS: no line is over 100 columns or ends in a blank; of a program the comments
narrow() {
    run "$@"
    case $* in *--program*) sed -i '/^#/!d' "$tmp/out" ;; esac
    awk 'length > 100 || / $/ { print "# " $0; bad = 1 } END { exit bad || NR == 0 }' "$tmp/out"
}
models=$("$UNSHARD" model list | sed 's/ .*//')
clusters=$("$UNSHARD" cluster list | sed -n 's/^\([^ ]\{1,\}\) .*/\1/p')
for model in $models; do
    ok "model show $model" narrow model show "$model" --states
    case $model in
    kda-*|pack-*|copyin-*) ok "sim $model is refused" complains 1 "mixes compute dtypes" sim "$model"; continue ;;
    esac
    ok "sim $model is no wider than a page" narrow sim "$model"
    ok "the head of explain $model --program" narrow explain "$model" --program --section init
    ok "explain $model" narrow explain "$model"
done
for cluster in $clusters; do
    ok "cluster show $cluster" narrow cluster show "$cluster"
    ok "sim on $cluster, out of all measured ranges" narrow sim llama3-405b --layers 1 \
        --cluster "$cluster" --seq 16 --gpus 1024 --nodes 256
done
for command in sim plan run explain compare validate check model cluster history query trace bench help; do
    ok "help $command" narrow help $command
done
for command in help "model list" "cluster list" "bench sim"; do
    # shellcheck disable=SC2086
    ok "$command" narrow $command
done
run sim llama3-8b --gpus 1
ok "one GPU is one" grep -q ' on 1 GPU of ' "$tmp/out"
run sim llama3-405b
bars() { is "$(grep -c ' 0\.0 %$' "$tmp/out") $(grep -c ' 0\.0 %.*#' "$tmp/out")" "1 0"; }
ok "what rounds to 0.0 % has no bar" bars
run sim llama3-8b --seq 1000000
ok "a long time is told in hours too" \
    grep -q '^  step .* s ([0-9]* [a-z]* [0-9]* [a-z]*)  ' "$tmp/out"
run sim llama3-8b
ok "a short one is not" grep -q '^  step [^(]*$' "$tmp/out"
cat >"$tmp/slow.json" <<END
{"schema": "unshard.cluster/1", "base": "h100-sxm", "name": "slow", "description": "a slow host",
 "host": {"launch_us": {"value": 1000000, "source": "made up"}}}
END
# digits FIELD: it is not 0, and in decimals; prints how many digits count
digits() { field "$1" | grep -x '[0-9.]*' | sed 's/^[0.]*//; s/\.//' | tr -d '\n' | wc -c; }
run sim llama3-8b --layers 1 --seq 1 --cluster "$tmp/slow.json" --json
for key in tokens_per_s_per_gpu mfu_pct hfu_pct; do
    ok "a tiny $key has six digits" test "$(digits $key)" -ge 6
done
run sim llama3-8b --layers 1 --seq 1 --cluster "$tmp/slow.json"
ok "and some of them in text" grep -q '^  MFU  *0\.0*[1-9][0-9]* %' "$tmp/out"

# again AC: what is computed a second time, in percent of what the model has to compute
again() {
    run sim llama3-8b --layers 2 --ac "$1" --json
    awk -v mfu="$(field mfu_pct)" -v hfu="$(field hfu_pct)" \
        'BEGIN { printf "%.2f", 100 * (hfu / mfu - 1) }'
}
ok "without checkpointing nothing is computed again" is "$(again none)" 0.00
ok "with every second block half of what all blocks are" is \
    "$(again every:2)" "$(again full | awk '{ printf "%.2f", $1 / 2 }')"

# --- explain
run sim llama3-8b --layers 2 --json
hash=$(field program_hash)
run explain llama3-8b --layers 2 --program
ok "explain prints the program that sim runs" grep -q "^# program $hash\$" "$tmp/out"
cp "$tmp/out" "$tmp/all"
ok "in three sections" is "$(grep '^section' "$tmp/all" \
    | tr '\n' ' ')" "section init section first section steady "
run explain llama3-8b --layers 2 --program --section steady
ok "--section prints one of them" is "$(grep '^section' "$tmp/out")" "section steady"
steady=$(wc -l <"$tmp/out")
run explain llama3-8b --layers 2 --program --section steady --expand
ok "--expand prints more" test "$(wc -l <"$tmp/out")" -gt "$steady"

# --- bench and the rest
run bench sim --json
for key in build_us verify_us summary_us engine_us place_us; do
    ok "bench tells $key" test -n "$(field $key)"
done
version() { run --version; grep -qx 'unshard [0-9][^ ]*' "$tmp/out"; }
ok "--version prints name and version" version
run sim --help
cp "$tmp/out" "$tmp/first"
run help sim
ok "sim --help is help sim" same "$tmp/out" "$tmp/first"
for line in "model list" "model show llama3-8b" "cluster list" "cluster show h100-sxm" \
    "cluster show toy"; do
    # shellcheck disable=SC2086
    ok "unshard $line" exits 0 $line
    # shellcheck disable=SC2086
    ok "unshard $line --json" exits 0 $line --json
    ok "which names its schema" grep -q '"schema":.*"unshard\.' "$tmp/out"
done
done_testing
