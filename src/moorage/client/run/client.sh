# Functions that acquire and release leases at a lease proxy. Needs bash and python3.
#
#   lease__acquire --type=T [--count=N] [--scope=step|test] [--jitter=10s|15m]
#       Prints the path of a file with the names of the leases (the handle). With the scope test,
#       the default, the names are also added to $SHARED_DIR/leases.
#   lease__release --handle=F | --names=A,B | --scope=test [--delay=20m]
#       A second release with the same handle does nothing. Names that are released by --handle or
#       --names are removed from $SHARED_DIR/leases.
#   lease__cat --handle=F [--format=plain|csv]
#   lease__install_lease_eligible
#       Succeeds if installations of $CLUSTER_PROFILE_SET_NAME are limited.
#
# Exit codes: 0 done, 1 failed, 2 unknown type. Messages go to standard error. Without
# $LEASE_PROXY_SERVER_URL the functions do nothing and succeed. The URL may contain a user and a
# password, as for curl: http://USER:PASSWORD@HOST:PORT, with %40 for @ in a password and so on.
# lease__acquire adds labels that say who asks: host, user, pid, CI job and its page, unless
# $MOORAGE_LABELS is 0. Only Moorage's lease proxy reads them.

function _lease__python() {
    python3 -c @PYTHON@ "$$,${BASHPID:-$$}" "$@"
}
export -f _lease__python

function lease__acquire() {
    _lease__python acquire "$@"
}
export -f lease__acquire

function lease__release() {
    _lease__python release "$@"
}
export -f lease__release

function lease__cat() {
    _lease__python cat "$@"
}
export -f lease__cat

function lease__install_lease_eligible() {
    [[ "${CLUSTER_PROFILE_SET_NAME:-}" =~ ^openshift-org-.+$ ]]
}
export -f lease__install_lease_eligible
