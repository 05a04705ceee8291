#!/bin/bash
# Whole-process measurements: run.sh BINARY
# Layered terraform_data, 10,000 and 20,000 of them: plan, apply, plan again, destroy; seconds, memory, and how they grow.
# `terraform` and `tofu`, where they are on PATH, do 1,000 (KARMAFORM_BENCH_OTHER) beside it: at 10,000 they take many minutes.
# 500 modules of 60 variables each: plan, with the others beside it.
# With a lab up: three etcd members from nothing.
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
BINARY=$(realpath "${1:?the karmaform binary}")
TIME=$(type -P time || true)
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT

seconds= megabytes= processor= user= system=
# Runs a command and sets `seconds`, `processor` and `megabytes` (highest resident memory). A command of more than ten minutes is stopped.
measure() {
    local start end code=0
    if [ -n "$TIME" ]; then
        "$TIME" -f '%e %U %S %M' -o "$WORK/time" timeout --foreground 600 "$@" >"$WORK/out" 2>&1 </dev/null || code=$?
        read -r seconds user system megabytes < <(tail -n 1 "$WORK/time")
        megabytes=$((megabytes / 1024)) processor=$(awk "BEGIN { printf \"%.2f\", $user + $system }")
    else
        start=$(date +%s%N)
        timeout --foreground 600 "$@" >"$WORK/out" 2>&1 </dev/null || code=$?
        end=$(date +%s%N)
        seconds=$(awk "BEGIN { printf \"%.2f\", ($end - $start) / 1e9 }") megabytes=- processor=-
    fi
    [ $code = 0 ] || { tail -n 20 "$WORK/out"; echo "failed with $code: $*"; return 1; }
}

declare -A took
row() { # TOOL N STAGE LIMIT COMMAND...
    local tool=$1 n=$2 stage=$3 limit=$4
    shift 4
    measure "$@" || return 0
    took[$tool.$n.$stage]=$seconds
    printf '%-10s %6d  %-12s %8s s %8s s of processor %6s MB   %s\n' "$tool" "$n" "$stage" "$seconds" "$processor" "$megabytes" "$limit"
}

layered() { # TOOL N ENDING COMMAND
    local tool=$1 n=$2 dir=$WORK/$1-$2
    mkdir "$dir"
    "$HERE/layered.sh" "$n" >"$dir/main.$3"
    cd "$dir"
    if [ "$tool" != karmaform ]; then
        measure "$4" init -no-color || return 0
        row "$tool" "$n" plan "" "$4" plan
        row "$tool" "$n" apply "" "$4" apply -auto-approve
        row "$tool" "$n" "no-op plan" "" "$4" plan
    else
        row "$tool" "$n" plan "(10,000: under 1.5 s and 150 MB)" "$4" plan
        row "$tool" "$n" apply "(10,000: under 5 s)" "$4" apply -auto-approve
        row "$tool" "$n" "no-op plan" "(10,000: under 1.5 s)" "$4" plan -detailed-exitcode
        row "$tool" "$n" destroy "" "$4" destroy -auto-approve
    fi
    cd "$WORK"
}

echo "Layered terraform_data (100 a layer), whole processes"
layered karmaform 10000 kf.hcl "$BINARY"
layered karmaform 20000 kf.hcl "$BINARY"
for stage in plan apply "no-op plan" destroy; do
    awk -v a="${took[karmaform.10000.$stage]:-0}" -v b="${took[karmaform.20000.$stage]:-0}" -v s="$stage" \
        'BEGIN { if (a > 0) printf "karmaform  20,000 / 10,000  %-12s %.2f   (at most 2.2)\n", s, b / a }'
done
others=${KARMAFORM_BENCH_OTHER:-1000}
for other in terraform tofu; do
    if found=$(type -P "$other"); then
        [ -d "$WORK/karmaform-$others" ] || layered karmaform "$others" kf.hcl "$BINARY"
        layered "$other" "$others" tf "$found"
    else
        echo "$other: not found on PATH, not laid beside it"
    fi
done

modules() { # TOOL ENDING COMMAND
    local tool=$1 dir=$WORK/modules-$1
    "$HERE/modules.sh" 500 60 "$dir" "$2"
    cd "$dir"
    [ "$tool" = karmaform ] || measure "$3" init -no-color || return 0
    row "$tool" 500 modules "(karmaform: under 1 s)" "$3" plan
    cd "$WORK"
}

echo
echo "500 modules of 60 variables each, whole processes"
modules karmaform kf.hcl "$BINARY"
for other in terraform tofu; do
    found=$(type -P "$other") || continue
    modules "$other" tf "$found"
    awk -v a="${took[karmaform.500.modules]:-0}" -v b="${took[$other.500.modules]:-0}" -v o="$other" \
        'BEGIN { if (a > 0 && b > 0) printf "%s / karmaform  modules  %.0f\n", o, b / a }'
done

if [ -z "${KARMAFORM_TEST_HOSTS:-}" ] || [ -z "${KARMAFORM_TEST_ETCD:-}" ]; then
    echo "SKIPPED (no lab): three etcd members from nothing"
    exit 0
fi
echo
echo "etcd_cluster on real hosts: $KARMAFORM_TEST_HOSTS"
cp -r "$HERE/../../examples/etcd-on-hosts" "$WORK/etcd"
"$HERE/../lab/kfvars.sh" >"$WORK/etcd/karmaform.kfvars.hcl"
cd "$WORK/etcd"
count=$(tr ',' '\n' <<<"$KARMAFORM_TEST_HOSTS" | wc -l)
trap '"$BINARY" destroy -auto-approve >/dev/null 2>&1 || true; rm -rf "$WORK"' EXIT
row karmaform "$count" plan "" "$BINARY" plan
row karmaform "$count" apply "(three members: under 8 s)" "$BINARY" apply -auto-approve
row karmaform "$count" "no-op plan" "(under 1 s)" "$BINARY" plan -detailed-exitcode
row karmaform "$count" destroy "" "$BINARY" destroy -auto-approve
