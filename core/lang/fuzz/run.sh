#!/bin/bash
# run.sh SECONDS [TARGET...]: fuzzes each target (all unless named) for so many seconds, two at a time, and keeps what covers more in corpus/.
# A find is an input that panics, takes more than 2 seconds or more than 500 MB; it is written to artifacts/. Needs cargo-fuzz.
set -euo pipefail
cd "$(dirname "$0")"
seconds=${1:?how many seconds for each target}
shift
targets=("${@:-}")
[ -n "${targets[0]}" ] || targets=(configuration conversion expression formatting json template)
cargo fuzz --version > /dev/null 2>&1 || { echo 'cargo-fuzz is missing: cargo install cargo-fuzz --locked'; exit 2; }
# No sanitizer: there is no unsafe code to watch, and those need a nightly compiler.
cargo fuzz build --fuzz-dir . --sanitizer none
binaries=$(echo target/*/release)

fuzz() {
  local binary=$1/$3 place=target/corpus/$3 least=target/least/$3
  rm -rf "$place" "$least"
  mkdir -p "$place" "$least" "artifacts/$3"
  python3 corpus.py unpack "corpus/$3.json" "$place"
  "$binary" "-max_total_time=$2" -timeout=2 -rss_limit_mb=500 -max_len=3000 "-artifact_prefix=artifacts/$3/" "$place" 2> "target/$3.log" \
    || { echo "$3: found something, see artifacts/$3 and target/$3.log"; return 1; }
  "$binary" -merge=1 -timeout=2 -rss_limit_mb=500 "$least" "$place" 2>> "target/$3.log"
  python3 corpus.py pack "$least" "corpus/$3.json"
  echo "$3: nothing found in $(sed -n 's/^Done \([0-9]*\) runs.*/\1/p' "target/$3.log" | head -1) runs"
}
export -f fuzz
printf '%s\n' "${targets[@]}" | xargs -P 2 -I{} bash -c 'fuzz "$@"' fuzz "$binaries" "$seconds" {}
