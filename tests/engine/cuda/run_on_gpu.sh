#!/usr/bin/env bash
# All checks and timings of the CUDA backend on a machine with a GPU; a short table comes last.
#
#   run_on_gpu.sh                  build here, then check and time here
#   run_on_gpu.sh pack FOLDER      build here and put programs and libraries into FOLDER ...
#   run_on_gpu.sh check FOLDER     ... to check and time on a machine that has nothing to build with
#
# The models are made by the project's own generator. A step that fails does not stop the others;
# the exit status is 1 if one did, 77 if there is no GPU. SKIP_SLOW=1 leaves out the sanitizer;
# BUILD is another build folder, PRESET another shape than 2b4t.
set -euo pipefail
root=$(cd "$(dirname "$0")/../../.." && pwd)
programs=(tests/engine/cuda/test_cuda_backend tests/engine/cuda/test_cuda_kernels
    tests/support/make_model app/bitnet-bench app/bitnet-inspect app/bitnet-chat)

# Libraries that a borrowed machine may lack; the C library is always its own.
libraries_of() {
    ldd "$@" | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | sort -u |
        grep -Ev '/(libc|libm|libdl|libpthread|librt|ld-linux[^/]*)\.so'
}

pack() {
    local folder=$1 build=${BUILD:-$root/build-gpu}
    meson setup "$build" "$root" >/dev/null 2>&1 || meson setup --reconfigure "$build" "$root"
    ninja -C "$build" "${programs[@]}"
    mkdir -p "$folder/lib"
    (cd "$build" && cp "${programs[@]}" "$folder/")
    libraries_of "$folder"/test_cuda_backend "$folder"/bitnet-chat | xargs -I{} cp {} "$folder/lib/"
}

failed=0
results=()

# note NAME STATUS: a line of the table.
note() {
    results+=("$(printf '%-44s %s' "$1" "$2")")
}

# step NAME COMMAND...
step() {
    local name=$1 start=$SECONDS
    shift
    echo "=== $name"
    if "$@"; then
        note "$name" "passed, $((SECONDS - start)) s"
    else
        note "$name" "FAILED with status $?"
        failed=1
    fi
}

# The same bytes from the processor and from the GPU.
same_logits() {
    local model=$1 tokens=$2
    ./bitnet-inspect logits "$model" --tokens "$tokens" --out cpu.f32 --device cpu &&
        ./bitnet-inspect logits "$model" --tokens "$tokens" --out gpu.f32 --device cuda &&
        cmp cpu.f32 gpu.f32
}

same_chat() {
    local model=$1
    shift
    echo 'tell me a story' >prompt.txt
    ./bitnet-chat "$model" -n 200 --private --device cpu "$@" <prompt.txt >cpu.txt &&
        ./bitnet-chat "$model" -n 200 --private --device cuda "$@" <prompt.txt >gpu.txt &&
        cmp cpu.txt gpu.txt
}

sanitize() {
    local tool=$1
    compute-sanitizer --tool "$tool" --error-exitcode 9 ./bitnet-inspect logits tiny.gguf \
        --tokens "$(seq -s, 1 70)" --out gpu.f32 --device cuda &&
        compute-sanitizer --tool "$tool" --error-exitcode 9 ./bitnet-chat tiny.gguf -n 8 --private \
            --device cuda <prompt.txt >/dev/null
}

bench() {
    ./bitnet-bench 2b4t.gguf --device cuda -p 128,512 -n 128 -d 0,2048 -b 1,16 -r 5 "$@"
}

check() {
    cd "$1"
    export LD_LIBRARY_PATH=$PWD/lib
    nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader || exit 77
    ./make_model tiny.gguf
    ./make_model --preset "${PRESET:-2b4t}" 2b4t.gguf
    step 'kernels on the twin' ./test_cuda_kernels
    step 'backend against the reference' ./test_cuda_backend
    step 'logits, tiny' same_logits tiny.gguf "$(seq -s, 1 200)"
    step 'logits, 2B4T shape' same_logits 2b4t.gguf "$(seq -s, 1 40)"
    step '200 tokens, greedy, 2B4T shape' same_chat 2b4t.gguf --temp 0
    step '200 tokens, drawn, 2B4T shape' same_chat 2b4t.gguf --seed 5
    if [ "${SKIP_SLOW:-}" != 1 ] && command -v compute-sanitizer >/dev/null; then
        step 'memcheck' sanitize memcheck
        step 'racecheck' sanitize racecheck
        step 'synccheck' sanitize synccheck
    fi
    step 'timings' bench
    bench --json >bench.json || true
    echo
    nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
    printf '%s\n' "${results[@]}"
    python3 - bench.json <<'PYTHON' || true
import json
import sys

bench = json.load(open(sys.argv[1], encoding='utf-8'))
print(f"read bandwidth {bench['read_gb_per_s']:.0f} GB/s, loaded in {bench['load_s']:.1f} s")
for row in bench['rows']:
    print(f"{row['test']:8} depth {row['depth']:5} batch {row['batch']:3} "
          f"{row['tokens_per_s']:10.1f} tokens/s")
PYTHON
    exit $failed
}

case ${1:-} in
pack) pack "$(mkdir -p "$2" && cd "$2" && pwd)" ;;
check) check "$2" ;;
'')
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    pack "$folder"
    check "$folder"
    ;;
*) sed -n '2,11s/^# \{0,1\}//p' "$0" ;;
esac
