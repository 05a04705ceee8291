#!/bin/sh
# Asks `karmaform drift`, keeps its reports in a folder, and tells of what is new. For cron, systemd, a CronJob, Tekton, Argo and CI alike.
#
#   drift.sh [ARGUMENTS OF karmaform drift]
#
#   DRIFT_DIR               folder for the reports and for what was told last; by default $STATE_DIRECTORY (systemd), else ./.drift
#   DRIFT_CHDIR             folder of the configuration; by default the current one
#   DRIFT_TEXTFILE          a *.prom file for node_exporter's textfile collector; an absolute path
#   DRIFT_SLACK_URL         incoming webhook: told when something is new or gone, or nothing could be looked at
#   DRIFT_WEBHOOK_URL       anything that takes the JSON report: told at the same times
#   DRIFT_ALERTMANAGER_URL  base address of an Alertmanager (/api/v2/alerts is added): told at each run, it knows itself what is new
#   DRIFT_..._URL_FILE      a file with the URL, instead of the URL itself; a file that does not exist counts as not set
#   DRIFT_..._CURL_FILE     a file of curl's (see `man curl`, --config) with more for this receiver, like `header = "Authorization: Bearer ..."`
#   DRIFT_MAX_TIME          seconds that one try of sending may take; by default 20
#   KARMAFORM               the program; by default karmaform
#
# Exit codes: those of `drift` (0, 2, 3, 1), and 4 where drift says 0 and somebody could not be told.
# Where nothing could be looked at (1), all receivers are told so, each time.
# What was told last (previous.json) is replaced only when all receivers took their message. So what could not be sent is told by the next run;
# where one of several receivers failed, the others hear it twice. A run that saw nothing does not replace it either. Nobody's URL is in an argument list or in what is printed.
set -u
newline='
'

say() { printf 'drift.sh: %s\n' "$*" >&2; }

# Reads an address from its variable or its file into $address; false if there is none.
address_from() { # VARIABLE FILE
    address=$1
    if [ -z "$address" ] && [ -n "$2" ] && [ -e "$2" ]; then
        address=$(cat -- "$2") || address=
        [ -n "$address" ] || { say "the file $2 can't be read, or is empty"; unsent=1; }
    fi
    case $address in
    '') return 1 ;;
    *[\"\\]* | *"$newline"*)
        say 'a URL with a quote, a backslash or more than one line is not used'
        unsent=1
        return 1
        ;;
    esac
}

# Posts a file. What curl must not show in its arguments comes on its standard input; printf is the shell's own.
post() { # NAME URL BODY MORE
    {
        printf 'url = "%s"\n' "$2"
        if [ -n "$4" ]; then cat -- "$4"; fi
    } | curl -q --config - --silent --show-error --fail --output /dev/null --max-time "$max_time" --retry 2 --retry-max-time "$max_time" \
        --header 'Content-Type: application/json' --data-binary "@$3" && return
    say "$1 was not told; the next run tries again"
    unsent=1
}

dir=${DRIFT_DIR:-${STATE_DIRECTORY:-.drift}}
max_time=${DRIFT_MAX_TIME:-20}
unsent=0

# Read first, so that no child inherits them.
address_from "${DRIFT_SLACK_URL:-}" "${DRIFT_SLACK_URL_FILE:-}" && slack=$address || slack=
address_from "${DRIFT_WEBHOOK_URL:-}" "${DRIFT_WEBHOOK_URL_FILE:-}" && webhook=$address || webhook=
address_from "${DRIFT_ALERTMANAGER_URL:-}" "${DRIFT_ALERTMANAGER_URL_FILE:-}" && alertmanager=$address || alertmanager=
unset DRIFT_SLACK_URL DRIFT_WEBHOOK_URL DRIFT_ALERTMANAGER_URL address

umask 022
mkdir -p -- "$dir/latest" || exit 1
dir=$(cd -- "$dir" && pwd) || exit 1
# What is there after the run is of this run.
rm -f -- "$dir"/latest/drift.* || exit 1

if [ -n "${DRIFT_TEXTFILE:-}" ]; then
    set -- "-report=prometheus=$DRIFT_TEXTFILE" "$@"
fi
# The JSON report is the last to be written: if it is there, all are.
KF_IN_AUTOMATION=1 KF_INPUT=0 "${KARMAFORM:-karmaform}" "-chdir=${DRIFT_CHDIR:-.}" drift "-previous=$dir/previous.json" "$@" \
    "-report=human=$dir/latest/drift.txt" \
    "-report=markdown=$dir/latest/drift.md" \
    "-report=html=$dir/latest/drift.html" \
    "-report=junit=$dir/latest/drift.xml" \
    "-report=sarif=$dir/latest/drift.sarif" \
    "-report=slack=$dir/latest/drift.slack.json" \
    "-report=alertmanager=$dir/latest/drift.alertmanager.json" \
    "-report=json=$dir/latest/drift.json"
code=$?

if [ ! -s "$dir/latest/drift.json" ]; then
    say "no report was made (exit code $code); what was told last is kept"
    # 2 and 3 would say that it was looked.
    exit 1
fi

if [ -n "$alertmanager" ]; then
    post Alertmanager "${alertmanager%/}/api/v2/alerts" "$dir/latest/drift.alertmanager.json" "${DRIFT_ALERTMANAGER_CURL_FILE:-}"
fi
# Empty where nothing is new and nothing is gone, and it could be looked.
if [ -s "$dir/latest/drift.slack.json" ]; then
    if [ -n "$webhook" ]; then
        post 'the webhook' "$webhook" "$dir/latest/drift.json" "${DRIFT_WEBHOOK_CURL_FILE:-}"
    fi
    if [ -n "$slack" ]; then
        post Slack "$slack" "$dir/latest/drift.slack.json" "${DRIFT_SLACK_CURL_FILE:-}"
    fi
fi

# An error came before anything was looked at: that is nothing to compare with.
if grep -q '^  "looked": false' "$dir/latest/drift.json"; then
    say 'nothing could be looked at; what was told last is kept'
elif [ "$unsent" = 0 ]; then
    # Whole or not at all.
    if ! cp -- "$dir/latest/drift.json" "$dir/previous.json.new" || ! mv -f -- "$dir/previous.json.new" "$dir/previous.json"; then
        say 'what was told could not be kept: the next run tells it again'
        unsent=1
    fi
fi
if [ "$code" = 0 ] && [ "$unsent" != 0 ]; then
    code=4
fi
exit "$code"
