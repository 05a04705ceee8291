#!/bin/bash
# Calls of one module: modules.sh CALLS VARIABLES DIRECTORY ENDING (kf.hcl or tf). Each call gives all variables, each of which is used.
set -euo pipefail
calls=$1 variables=$2 dir=$3 ending=$4
mkdir -p "$dir/m"
awk -v n="$variables" 'BEGIN {
    for (i = 0; i < n; i++) printf "variable \"v%d\" {\n  type    = string\n  default = \"d%d\"\n}\n", i, i
    print "locals {"
    for (i = 0; i < n; i++) printf "  l%d = \"${var.v%d} of %d\"\n", i, i, n
    print "}\nresource \"terraform_data\" \"t\" {\n  input = {"
    for (i = 0; i < n; i++) printf "    a%d = local.l%d\n", i, i
    print "  }\n}"
    for (i = 0; i < n; i += 3) printf "output \"o%d\" {\n  value = local.l%d\n}\n", i, i
}' >"$dir/m/main.$ending"
awk -v calls="$calls" -v n="$variables" 'BEGIN {
    for (c = 0; c < calls; c++) {
        printf "module \"m%d\" {\n  source = \"./m\"\n", c
        for (i = 0; i < n; i++) printf "  v%d = \"%d in %d\"\n", i, i, c
        print "}"
    }
}' >"$dir/main.$ending"
