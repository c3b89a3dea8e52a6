#!/usr/bin/env bash
# test_run_on_gpu.sh SCRIPT BUILD DRIVER: tests run_on_gpu.sh on a machine without a GPU. The script
# packs the programs of BUILD, rejects wrong arguments, and skips with status 77. Then it runs each
# part but `tests` at a small size, with the stand-in for the driver library in folder DRIVER, and
# the part `first` also with a kill at several times.
set -euo pipefail
script=$1 build=$2 driver=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fails_with() {
    local wanted=$1 status=0
    shift
    "$@" >"$work/output" 2>&1 || status=$?
    [ "$status" = "$wanted" ] || {
        cat "$work/output"
        echo "status $status instead of $wanted: $*"
        exit 1
    }
}

# contains FILE TEXT...: fails unless the file contains every text.
contains() {
    local file=$1 text
    shift
    for text; do
        grep -qF -- "$text" "$file" || {
            cat "$file"
            echo "not found in $file: $text"
            exit 1
        }
    done
}

fails_with 2 "$script" nonsense
fails_with 2 "$script" check
fails_with 2 "$script" check "$work/missing"
fails_with 2 "$script" pack
BUILD=$build "$script" collect "$work/pack"
[ -x "$work/pack/bitnet-chat" ] && [ -x "$work/pack/test_cuda_head" ]
ls "$work"/pack/lib/libjansson.so.* "$work"/pack/libc/ld-linux-* >/dev/null
fails_with 2 "$script" check "$work/pack" nonsense

# Stand-ins for the tools that the script uses on a GPU machine.
mkdir "$work/bin" "$work/out"
printf '#!/bin/sh\nexit 9\n' >"$work/bin/nvidia-smi"
chmod +x "$work/bin/nvidia-smi"
export PATH=$work/bin:$PATH
fails_with 77 "$script" check "$work/pack"
cat >"$work/bin/nvidia-smi" <<'SMI'
#!/bin/sh
case $* in
*memory.used*) echo 512 ;;
*) echo 'Twin GPU, 580.1, 1024 MiB' ;;
esac
SMI
cat >"$work/bin/compute-sanitizer" <<'SANITIZER'
#!/bin/sh
[ "$1 $3 $4" = '--tool --error-exitcode 9' ] && shift 4 && exec "$@"
SANITIZER
chmod +x "$work/bin/compute-sanitizer"

export LD_LIBRARY_PATH=$driver PRESET=tiny TOKENS=6 TURNS=10 BENCH='-p 8 -n 3 -d 0 -b 1,2 -r 1'
export OUT=$work/out
fails_with 0 "$script" check "$work/pack" sanitizer turns
contains "$work/output" 'sanitizer initcheck' 'turns     10 turns, memory flat'
fails_with 0 "$script" check "$work/pack" bytes timings
contains "$work/output" 'bytes     logits, llama' 'logits, qwen35-tiny' '6 tokens, drawn, tiny' \
    'Twin GPU, 580.1' \
    'timings   pp8, depth 0, batch 1' 'timings   tg3, drawn, depth 0, batch 1' 'sanitizer initcheck'
python3 - "$work/out/results.json" <<'PYTHON'
import json
import sys

results = json.load(open(sys.argv[1], encoding='utf-8'))
parts = {part['part']: part['steps'] for part in results['parts']}
assert list(parts) == ['bytes', 'sanitizer', 'timings', 'turns'], parts
greedy, drawn = [step['data'] for step in parts['timings'] if 'data' in step]
assert greedy['rows'][0]['test'] == 'pp8' and drawn['sample'] and drawn['rows'], (greedy, drawn)
assert all(step['status'] == 0 for steps in parts.values() for step in steps), parts
PYTHON

# results_are EXPRESSION: fails unless all results.json of the last run are complete JSON for which
# the Python expression is true. In it, `steps` are the steps of the part `first`.
results_are() {
    python3 - "$1" "$work/pack.work/results.json" "$work/out/results.json" <<'PYTHON'
import json
import sys

for path in sys.argv[2:]:
    results = json.load(open(path, encoding='utf-8'))
    assert results['gpu'].startswith('Twin GPU'), results
    parts = {part['part']: part['steps'] for part in results['parts']}
    steps = parts.get('first', [])
    assert eval(f"({sys.argv[1]})"), (path, steps)
PYTHON
}

# The first ten minutes: everything passes, the results are those of the CPU.
export PROMPT=20 RATES='2 4 8 2 1' ONLY_TESTS='info*'
fails_with 0 "$script" first "$work/pack"
contains "$work/output" '20 ids, 6 tokens' 'tg2, depth 8, batch 1' 'first     initcheck'
contains "$work/pack.work/first.06.log" 'the bytes of the CPU'
contains "$work/out/logs.txt" 'no graph, no early launch' 'Twin GPU'
[ -s "$work/out/table.txt" ] && [ -s "$work/out/clocks.csv" ]
results_are 'all(step["status"] == 0 for step in steps) and len(steps) > 20'
results_are '[step["data"]["rows"][0]["test"] for step in steps if "data" in step and
    step["name"] != "microbenchmarks"] == ["tg2", "pp4", "tg2", "tg2"]'
# The stand-in for the driver measures nothing, and no rows claim otherwise.
after_kernels='[step["name"] for step in steps].index("times of kernels") + 1'
results_are "steps[$after_kernels][\"name\"] == \"microbenchmarks\" and
    steps[$after_kernels][\"data\"] == {
        \"skipped\": \"no device, only the stand-in for the driver\", \"rows\": []} and
    steps[-1][\"name\"] == \"initcheck\""

# A kill at any time leaves complete results of the steps so far. The step that was running has the
# status null.
for delay in 0.3 0.9 1.7 2.9 4.3; do
    rm -rf "$work/pack.work" "$work/out"
    mkdir "$work/out"
    setsid "$script" first "$work/pack" >"$work/output" 2>&1 &
    group=$!
    sleep "$delay"
    kill -KILL -- "-$group" 2>/dev/null || true
    wait "$group" 2>/dev/null || true
    [ ! -e "$work/pack.work/results.json" ] || cp -n "$work/pack.work/results.json" "$work/out/"
    [ ! -s "$work/out/results.json" ] ||
        results_are 'all(step["status"] == 0 for step in steps[:-1])'
done

# Wrong results of the GPU: the first difference is kept, and the other steps still run.
rm -rf "$work/pack.work" "$work/out"
mkdir "$work/out"
FAKE_CUDA_WRONG_TOKEN=1 STEPS='^(probe|results|20 ids|tg2$)' \
    fails_with 1 "$script" first "$work/pack"
contains "$work/output" 'the first difference: position ' "tg2  "
[ -s "$work/out/different.bytes" ]
results_are '[step["name"] for step in steps if step["status"] == 1][0] == "20 ids, 6 tokens"'

# Logits of the GPU that end too early, and counters that cannot be read.
mv "$work/pack/gpu_run" "$work/pack/gpu_run.kept"
cat >"$work/pack/gpu_run" <<RUN
#!/bin/sh
"$work/pack/gpu_run.kept" "\$@" || exit
[ ! -s gpu.logits ] || truncate -s -4 gpu.logits
RUN
printf '#!/bin/sh\nexit 4\n' >"$work/bin/ncu"
chmod +x "$work/pack/gpu_run" "$work/bin/ncu"
STEPS='^(probe|results|20 ids|counters)' fails_with 1 "$script" first "$work/pack"
results_are '{step["name"]: step["status"] for step in steps if step["status"] != 0} ==
    {"20 ids, 6 tokens": 1, "counters of kernels": 4}'
mv "$work/pack/gpu_run.kept" "$work/pack/gpu_run"
rm "$work/bin/ncu"

# Microbenchmarks that fail: the measurements so far are kept if they are complete JSON, and the
# sanitizers still run.
mv "$work/pack/gpu_micro" "$work/pack/gpu_micro.kept"
for rows in '{"rows":[{"what":"gap","us":1}]}' '{"rows":[{"what":"gap","us":1}'; do
    printf '#!/bin/sh\necho '"'%s'"'\nexit 3\n' "$rows" >"$work/pack/gpu_micro"
    chmod +x "$work/pack/gpu_micro"
    STEPS='^(probe|micro|make tiny|initcheck)' fails_with 1 "$script" first "$work/pack"
    [[ $rows == *']}' ]] && has_data=True || has_data=False
    results_are "[(step[\"status\"], step.get(\"data\", {}).get(\"rows\"))
        for step in steps if step[\"name\"] == \"microbenchmarks\"] ==
        [(3, [{\"what\": \"gap\", \"us\": 1}] if $has_data else None)] and
        steps[-1][\"name\"] == \"initcheck\" and steps[-1][\"status\"] == 0"
done
mv "$work/pack/gpu_micro.kept" "$work/pack/gpu_micro"

# A GPU that the probe refuses: only the reasons are collected.
FAKE_CUDA=wrong fails_with 1 "$script" first "$work/pack"
contains "$work/output" 'Twin GPU computes wrong results' 'probe, memcheck'
results_are 'len(steps) == 5'

# If one measurement of rates fails, the results of the other one remain.
cat >"$work/pack/bitnet-bench.new" <<BENCH
#!/bin/sh
case "\$*" in *--sample*) exit 3 ;; esac
exec "$build/app/bitnet-bench" "\$@"
BENCH
mv "$work/pack/bitnet-bench" "$work/pack/bitnet-bench.kept"
mv "$work/pack/bitnet-bench.new" "$work/pack/bitnet-bench"
chmod +x "$work/pack/bitnet-bench"
fails_with 1 "$script" check "$work/pack" timings
contains "$work/output" 'bitnet-bench, drawn  ' 'timings   pp8, depth 0, batch 1'
results_are '[step["status"] for step in parts["timings"]] == [0, 0, 3] and
    parts["timings"][1]["data"]["rows"] and "data" not in parts["timings"][2]'
printf '#!/bin/sh\n[ "$1" = --version ]\n' >"$work/pack/bitnet-bench"
fails_with 1 "$script" check "$work/pack" timings
results_are '[step["status"] for step in parts["timings"]] == [0, 1, 1] and
    not any("data" in step for step in parts["timings"])'
mv "$work/pack/bitnet-bench.kept" "$work/pack/bitnet-bench"

# A failed step is reported, and the others still run.
export FAKE_CUDA_BREAK=0
fails_with 1 "$script" check "$work/pack" turns
contains "$work/output" 'FAILED with status 1'
export FAKE_CUDA=hidden
fails_with 1 "$script" check "$work/pack" bytes
grep -q 'logits, llama  *FAILED' "$work/output"
grep -q 'make tiny  *passed' "$work/output"
