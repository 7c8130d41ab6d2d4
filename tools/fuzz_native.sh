#!/bin/sh
# Run the programs that tools/fuzz_native.py has put beside this script, several processes for each
# target at the same time: sh go.sh [RUNS [JOBS [SECONDS]]]. RUNS is the number of inputs of a target;
# SECONDS ends processes that are slower. Prints the inputs executed and ends with 1 after a finding.
# Reports and the inputs of findings go to $OUT, by default the folder "found" beside the script.
set -u
here=$(cd "$(dirname "$0")" && pwd)
runs=${1:-10000000} jobs=${2:-5} seconds=${3:-0}
out=${OUT:-$here/found}
mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
each=$(((runs + jobs - 1) / jobs))
for program in "$here"/*/fuzz; do
  target=$(basename "$(dirname "$program")")
  start=$program
  "$program" -help=1 >"$work/help" 2>&1 ||
    start="$here/lib/ld-linux-x86-64.so.2 --library-path $here/lib $program" # an older libc here
  job=1
  while [ "$job" -le "$jobs" ]; do
    mkdir -p "$work/$target.$job"
    $start -runs="$each" -seed="$job" -max_len="$(cat "$here/$target/longest")" -verbosity=0 \
      -max_total_time="$seconds" -print_final_stats=1 -artifact_prefix="$out/$target.$job." \
      "$work/$target.$job" "$here/$target/seeds" >"$work/$target.$job.txt" 2>&1 &
    eval "pid_${target}_$job=$!"
    job=$((job + 1))
  done
done
failed=0
for program in "$here"/*/fuzz; do
  target=$(basename "$(dirname "$program")")
  job=1 findings=0
  while [ "$job" -le "$jobs" ]; do
    eval "wait \$pid_${target}_$job" || {
      findings=$((findings + 1)) failed=1
      cp "$work/$target.$job.txt" "$out/$target.$job.txt"
    }
    job=$((job + 1))
  done
  executed=$(cat "$work/$target".*.txt | sed -n 's/^stat::number_of_executed_units: *//p' |
    awk '{ n += $1 } END { print n + 0 }')
  kept=$(ls "$work/$target".*/ 2>/dev/null | grep -c '^[0-9a-f]\{40\}$')
  printf '%-11s %12s inputs, %s findings, %s inputs kept\n' "$target" "$executed" "$findings" "$kept"
done >"$out/summary.txt"
cat "$out/summary.txt"
exit $failed
