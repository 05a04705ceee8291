#!/bin/bash
# Programs of others that read plans as JSON and need no network:
#
#   readers.sh install                    puts them into the cache, if they are not there; exit 77 if they can't be had, with the reason
#   readers.sh rego POLICY INPUT QUERY    what a policy in Rego, as conftest and OPA run them, says of a file of JSON
#   readers.sh compliance FEATURES PLAN   terraform-compliance: scenarios in a folder, about a plan
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
. "$HERE/common.sh"

skip() {
    printf 'SKIPPED (no readers of plans): %s\n' "$*" >&2
    exit 77
}

bin=$(from_pypi readers "regopy==1.5.2 terraform-compliance==1.16.0")
case ${1:-install} in
    install) echo "$bin" ;;
    rego)
        exec "$bin/python" - "${@:2}" <<'PYTHON'
import json
import sys
import regopy
policy, given, query = sys.argv[1:]
rego = regopy.Interpreter()
rego.set_input(json.load(open(given)))
rego.add_module(policy, open(policy).read())
print(rego.query(query))
PYTHON
        ;;
    compliance) exec "$bin/terraform-compliance" -f "$2" -p "$3" --no-ansi ;;
    *) sed -n '2,/^set/s/^# \{0,1\}//p' "$0" | sed '/^set/d' >&2; exit 2 ;;
esac
