# Bash completion for unshard. It knows no option and no name: all are read from what the program
# itself prints, so that it cannot fall behind.

# Words that can stand for the value of an option, or nothing where files are what is meant.
_unshard_values() {
    case $3 in
    --cluster) "$1" cluster list | sed -n 's/^\([^ ]\{1,\}\) .*/\1/p' ;;
    *)
        "$1" help "$2" | awk -v option="$3" '
            index($0, "  " option " ") == 1 {
                for (value = $2; value ~ /[|]$/ && getline > 0; value = value $1) { }
            }
            END { if (value ~ /[|]/) print value }' | tr '|' '\n' | grep -v '[A-Z]'
        ;;
    esac
}

# Words that can stand in the place of an operand.
_unshard_operands() {
    case $2 in
    help) "$1" help | sed -n '/^commands:/,/^$/s/^  \([a-z]\{1,\}\) .*/\1/p' ;;
    sim | plan | explain) "$1" model list | sed 's/ .*//' ;;
    compare) echo last ;;
    bench) echo host sim store trace ;;
    device)
        case $3 in
        check) "$1" device list | awk '{ print $3 }' ;;
        device) echo check list store ;;
        esac
        ;;
    history) echo list ;;
    trace)
        case $3 in
        export) echo last ;;
        trace) echo export check show ;;
        esac
        ;;
    model | cluster)
        if test "$3" = show; then
            "$1" "$2" list | sed -n 's/^\([^ ]\{1,\}\) .*/\1/p'
        else
            echo list show
        fi
        ;;
    esac
}

_unshard() {
    local words word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
    local command=${COMP_WORDS[1]}
    if ((COMP_CWORD == 1)); then
        words=$(_unshard_operands "$1" help)
    elif [[ $word == -* ]]; then
        words=$("$1" help "$command" 2>/dev/null | sed -n 's/^  \(--[a-z0-9-]*\).*/\1/p')
    elif [[ $before == --* ]] && "$1" help "$command" 2>/dev/null | grep -q "^  $before [^ ]"; then
        words=$(_unshard_values "$1" "$command" "$before")
    else
        words=$(_unshard_operands "$1" "$command" "$before")
    fi
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}
complete -o default -F _unshard unshard
