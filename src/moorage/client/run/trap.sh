# Evaluate this after you set your own traps: it releases the leases, then runs those traps. A trap
# that you set later replaces it.
function _moorage__trap() {
    local command=$1 name before
    shift
    for name in "$@"; do
        before=$(trap -p "$name")
        if [[ -n $before ]]; then
            eval "local -a words=($before)"
            before=${words[2]}
            if [[ -z $before && $name != EXIT ]]; then
                continue # an ignored signal stays ignored
            fi
        elif [[ $name != EXIT ]]; then
            before="trap - $name; kill -s $name \$\$" # the default action
        fi
        printf -v before '%q' "$before"
        # The earlier trap sees the exit status of the script in $?, not that of the release.
        trap "_moorage__status=\$?; $command || :
if (exit \"\$_moorage__status\"); then eval $before; else eval $before; fi" "$name"
    done
}
_moorage__trap @COMMAND@ @SIGNALS@
