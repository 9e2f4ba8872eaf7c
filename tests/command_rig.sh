# shellcheck shell=sh disable=SC2154,SC2034  # tmp is of tap.sh; who sources this uses the rest
# Running the program and looking at what it says. After tap.sh:
# . "$top_srcdir/tests/command_rig.sh"

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

# One line on stderr that names the command and contains the words.
says() { # WORDS
    test "$(wc -l <"$tmp/err")" = 1 && grep -q '^unshard' "$tmp/err" &&
        grep -qF -- "$1" "$tmp/err" && return 0
    sed 's/^/# /' "$tmp/err"
    return 1
}

# That, and nothing on stdout.
complains() { # CODE WORDS ARGUMENTS
    want=$1 words=$2
    shift 2
    exits "$want" "$@" && says "$words" && test ! -s "$tmp/out"
}

# field NAME: the first number or string of that name in the last JSON output
field() {
    sed -n "s/^[[:blank:]]*\"$1\":[[:blank:]]*\"\{0,1\}\([^\",]*\).*/\1/p" "$tmp/out" | head -n 1
}
is() { test "$1" = "$2" || { echo "# got '$1', want '$2'"; return 1; }; }
same() { cmp -s "$1" "$2" || { diff "$1" "$2" | sed 's/^/# /'; return 1; }; }

# sql STATEMENT [PARAMETER]...: its rows without the names, values parted by commas
sql() { "$UNSHARD" query "$@" --csv | tr -d '\r' | sed 1d; }

# A model and a cluster that take no time.
cat >"$tmp/tiny.json" <<END
{"model_type": "llama", "hidden_size": 64, "intermediate_size": 160, "num_hidden_layers": 2,
 "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 256,
 "max_position_embeddings": 128}
END
tiny="$tmp/tiny.json --cluster toy --gpus 2"
