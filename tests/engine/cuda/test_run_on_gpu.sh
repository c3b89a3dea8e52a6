#!/usr/bin/env bash
# test_run_on_gpu.sh SCRIPT BUILD DRIVER: tests run_on_gpu.sh on a machine without a GPU. The script
# packs the programs of BUILD, rejects wrong arguments, and skips with status 77. Then it runs each
# part but `tests` at a small size, with the stand-in for the driver library in folder DRIVER.
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
contains "$work/output" 'bytes     logits, llama' '6 tokens, drawn, tiny' 'Twin GPU, 580.1' \
    'timings   pp8, depth 0, batch 1' 'timings   tg3, drawn, depth 0, batch 1' 'sanitizer initcheck'
python3 - "$work/out/results.json" <<'PYTHON'
import json
import sys

results = json.load(open(sys.argv[1], encoding='utf-8'))
parts = {part['part']: part['steps'] for part in results['parts']}
assert list(parts) == ['bytes', 'sanitizer', 'timings', 'turns'], parts
rates = parts['timings'].pop()
assert rates['greedy']['rows'][0]['test'] == 'pp8' and rates['drawn']['rows'], rates
assert all(step['status'] == 0 for steps in parts.values() for step in steps), parts
PYTHON

# A failed step is reported, and the others still run.
export FAKE_CUDA_BREAK=0
fails_with 1 "$script" check "$work/pack" turns
contains "$work/output" 'FAILED with status 1'
export FAKE_CUDA=hidden
fails_with 1 "$script" check "$work/pack" bytes
grep -q 'logits, llama  *FAILED' "$work/output"
grep -q 'make tiny  *passed' "$work/output"
