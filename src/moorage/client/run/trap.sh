# Evaluate this after your own traps: it keeps them and releases first. A trap set later replaces it.
function _moorage__trap() {
    local command=$1 name before
    shift
    for name in "$@"; do
        before=$(trap -p "$name")
        if [[ -n $before ]]; then
            eval "local -a words=($before)"
            before=${words[2]}
            if [[ -z $before && $name != EXIT ]]; then
                continue # it is ignored, and stays so
            fi
        elif [[ $name != EXIT ]]; then
            before="trap - $name; kill -s $name \$\$" # what happens without any trap
        fi
        printf -v before '%q' "$before"
        # What was trapped before sees in $? how the script ended, not how the release did.
        trap "_moorage__status=\$?; $command || :
if (exit \"\$_moorage__status\"); then eval $before; else eval $before; fi" "$name"
    done
}
_moorage__trap @COMMAND@ @SIGNALS@
