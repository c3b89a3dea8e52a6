#!/usr/bin/env bash
# Runs all checks and timings of the CUDA backend on a machine with a GPU and prints a table.
#
#   run_on_gpu.sh                        builds, checks and times on this machine
#   run_on_gpu.sh pack FOLDER            builds and copies programs and libraries to FOLDER, at most
#                                        64 MB, for a GPU machine that has no compilers
#   run_on_gpu.sh check FOLDER [PART...] runs all parts, or those named, on the GPU machine
#   run_on_gpu.sh first FOLDER           the same as check FOLDER first: what to run in the first
#                                        ten minutes on a GPU, the most useful steps first
#   run_on_gpu.sh collect FOLDER         the same as pack, without the build: copies from BUILD
#
# Parts, at most ten minutes each. Without a name, all but `first` run:
#   first      the device, its tests, bytes, rates, times of kernels, microbenchmarks, sanitizers
#   tests      the kernels on the twin (compiled for the host), the whole backend on the GPU
#   bytes      logits and 200 tokens equal those of the CPU, byte for byte
#   sanitizer  compute-sanitizer: memcheck, racecheck, synccheck, initcheck
#   timings    bitnet-bench on the 2B4T shape
#   turns      1,000 turns do not change the used memory of the GPU
#
# The project's own generator makes the models. They stay in FOLDER.work with the results: a table,
# results.json and the output of every step (PART.NN.log). After each step results.json is replaced
# as a whole, so it is complete JSON whenever the script is stopped; a step that was running has the
# status null. If $OUT is set, results.json, the table, logs.txt and other evidence are copied there
# after each step. After a failed step the others still run. The exit status is 1 if a step failed,
# 2 for a wrong argument, 77 if there is no GPU.
# Environment: BUILD, the build folder; PRESET, the shape (default 2b4t); PROMPT, TOKENS, TURNS,
# BENCH, RATES and ONLY_TESTS, to shorten the run; STEPS, a regular expression: only the steps whose
# names contain it run.
set -euo pipefail
root=$(cd "$(dirname "$0")/../../.." && pwd)
build=${BUILD:-$root/build-gpu}
preset=${PRESET:-2b4t} n_tokens=${TOKENS:-200} n_prompt=${PROMPT:-300} n_turns=${TURNS:-1000}
read -r n_tg n_pp n_depth n_batch n_runs <<<"${RATES:-128 512 2048 16 5}" # of the part `first`
bench_words=${BENCH:--p 128,512 -n 128 -d 0,2048 -b 1,16 -r 5}
tests=(test_cuda_kernels test_cuda_r16 test_cuda_head test_cuda_backend test_cuda_experts)
programs=("${tests[@]/#/tests/engine/cuda/}" tests/engine/cuda/gpu_run tests/engine/cuda/gpu_micro
    tests/support/make_model app/bitnet-bench app/bitnet-inspect app/bitnet-chat)
all_parts=(tests bytes sanitizer timings turns)
reported_parts=(first "${all_parts[@]}")
deadline=1000000 # in seconds since the start of the script
max_bytes=67108864 # of a packed folder

usage() {
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
    exit 2
}

# Prints the shared libraries that the programs need.
libraries_of() {
    ldd "$@" | awk '$2 == "=>" && $3 ~ /^\// { print $3 } $1 ~ /^\// && NF == 2 { print $1 }' |
        grep -v ':$' | sort -u
}

# collect FOLDER: copies the built programs without symbols, and every library that they need. The
# C library gets a folder of its own, because the GPU machine normally uses its own C library.
collect() {
    local folder=$1 file own='/(libc|libm|libdl|libpthread|librt|ld-linux[^/]*)\.so'
    mkdir -p "$folder/lib" "$folder/libc"
    for file in "${programs[@]}"; do
        strip -o "$folder/${file##*/}" "$build/$file"
    done
    for file in $(libraries_of "${programs[@]/#/$build/}"); do
        if [[ $file =~ $own ]]; then
            cp -L "$file" "$folder/libc/"
        else
            cp -L "$file" "$folder/lib/"
        fi
    done
}

pack() {
    meson setup "$build" "$root" >/dev/null 2>&1 || meson setup --reconfigure "$build" "$root"
    ninja -C "$build" "${programs[@]}"
    collect "$1"
    local n_bytes
    n_bytes=$(du -sb "$1" | cut -f1)
    echo "packed $((n_bytes / 1000000)) MB in $1"
    [ "$n_bytes" -le $max_bytes ] || {
        echo "the limit is $((max_bytes / 1000000)) MB" >&2
        exit 1
    }
}

# call SECONDS PROGRAM...: runs a packed program with its libraries, and with the C library that it
# was built with if this machine has an older one.
call() {
    local limit=$1 program=$2
    shift 2
    [ "$limit" -lt $((deadline - SECONDS)) ] || limit=$((deadline - SECONDS))
    [ "$limit" -gt 0 ] || { echo 'no time is left' && return 124; }
    timeout "$limit" env LD_LIBRARY_PATH="$lib" ${before[@]+"${before[@]}"} \
        ${loader[@]+"${loader[@]}"} "$folder/$program" "$@"
}

find_loader() {
    lib=$folder/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} loader=() before=()
    call 60 bitnet-bench --version >/dev/null 2>&1 && return
    loader=("$folder"/libc/ld-linux-*.so.* --library-path "$folder/libc:$lib")
    call 60 bitnet-bench --version >/dev/null || {
        echo 'the packed programs do not start on this machine' >&2
        exit 1
    }
}

# Prints stdin as the inside of a JSON string: printable ASCII, at most 300 bytes.
json_text() {
    LC_ALL=C tr -cs ' -~' ' ' | sed -E 's/^(.{300}).*/\1/; s/ *$//; s/[\\"]/\\&/g'
}

# replace FILE: writes stdin to a new file, which then replaces FILE in one operation.
replace() {
    cat >"$1.new" && mv "$1.new" "$1"
}

# write_part [OBJECT]: writes the JSON of the part: its finished steps, and the one that runs.
write_part() {
    {
        printf '{"part":"%s","steps":[' "$part"
        { cat "$part.steps" && [ $# -eq 0 ] || printf '%s\n' "$1"; } | paste -sd,
        printf ']}\n'
    } | replace "$part.json"
    publish
}

# Combines the parts of this call and of earlier calls, and copies the evidence to $OUT.
publish() {
    local name comma=
    {
        printf '{"gpu":"%s","parts":[' "$(json_text <<<"$gpu")"
        for name in "${reported_parts[@]}"; do
            [ -s "$name.json" ] || continue
            printf '%s' "$comma"
            cat "$name.json"
            comma=,
        done
        printf ']}\n'
    } | replace results.json
    [ -n "${OUT:-}" ] || return 0
    for name in results.json clocks.csv different.bytes; do
        [ ! -s "$name" ] || replace "$OUT/$name" <"$name"
    done
    print_tables | replace "$OUT/table.txt"
    tail -c 200000 ./*.log 2>/dev/null | replace "$OUT/logs.txt"
}

# note NAME STATUS SECONDS [WORD]: adds a line to the part's table and an object to its JSON. The
# object has the last line of the log, and the JSON object $data if a step has set it.
note() {
    local word=${4:-passed} last
    [ "$2" = 0 ] || word="FAILED with status $2"
    printf '%-9s %-40s %s, %s s\n' "$part" "$1" "$word" "$3" >>"$part.table"
    last=$(tail -n 1 "$log" 2>/dev/null | json_text)
    printf '{"name":"%s","status":%d,"seconds":%d,"last":"%s"%s}\n' "$(json_text <<<"$1")" "$2" \
        "$3" "$last" "${data:+,\"data\":$data}" >>"$part.steps"
    [ "$2" = 0 ] || failed=1
    write_part
}

# step NAME COMMAND...: runs the command and records its output, status and time. The status is also
# in $step_status. A step that $STEPS excludes is not recorded, and its status is 0.
step() {
    local name=$1 start=$SECONDS
    shift
    step_status=0 data=
    [[ $name =~ ${STEPS:-.} ]] || return 0
    n_steps=$((n_steps + 1))
    log=$(printf '%s.%02d.log' "$part" "$n_steps")
    echo "=== $part: $name" | tee "$log"
    write_part "{\"name\":\"$(json_text <<<"$name")\",\"status\":null}"
    "$@" >>"$log" 2>&1 || step_status=$?
    tail -n +2 "$log"
    note "$name" "$step_status" $((SECONDS - start))
}

# with NAME=VALUE COMMAND...: runs the command with this environment variable.
with() {
    local -x "${1?}"
    shift
    "$@"
}

# model NAME OPTIONS...: generates a model unless an earlier call has done so.
model() {
    local name=$1
    shift
    [ -s "$name" ] || { call 300 make_model "$@" "$name.new" && mv "$name.new" "$name"; }
}

# Compares the output of CPU and GPU byte for byte.
same_logits() {
    local name=$1 tokens=$2
    call 120 bitnet-inspect logits "$name" --tokens "$tokens" --out cpu.f32 --device cpu &&
        call 60 bitnet-inspect logits "$name" --tokens "$tokens" --out gpu.f32 --device cuda &&
        cmp cpu.f32 gpu.f32
}

same_chat() {
    local words=(-m "$1" -n "$n_tokens" --private "${@:2}")
    call 150 bitnet-chat "${words[@]}" --device cpu <prompt.txt >cpu.txt &&
        call 60 bitnet-chat "${words[@]}" --device cuda <prompt.txt >gpu.txt &&
        cmp cpu.txt gpu.txt
}

part_tests() {
    local test
    for test in "${tests[@]}"; do
        step "$test" call 180 "$test"
    done
}

part_bytes() {
    local arch name
    for arch in bitnet-b1.58 bitnet-25 bitnet llama minicpm; do
        step "make $arch" model "$arch.gguf" --arch "$arch"
        step "logits, $arch" same_logits "$arch.gguf" "$(seq -s, 1 "$n_tokens")"
    done
    # With blocks of columns, experts and windows, recurrent layers.
    for name in qwen3-tiny maple-tiny qwen35-tiny; do
        step "make $name" model "$name.gguf" --preset "$name"
        step "logits, $name" same_logits "$name.gguf" "$(seq -s, 1 "$n_tokens")"
    done
    name=$preset.gguf
    step "make $preset" model "$name" --preset "$preset"
    step "logits, $preset" same_logits "$name" "$(seq -s, 1 40)"
    step "$n_tokens tokens, greedy, $preset" same_chat "$name" --temp 0
    step "$n_tokens tokens, drawn, $preset" same_chat "$name" --seed 5
}

sanitize() {
    before=(compute-sanitizer --tool "$1" --error-exitcode 9)
    call 70 bitnet-inspect logits tiny.gguf --tokens "$(seq -s, 1 70)" --out gpu.f32 \
        --device cuda &&
        call 70 bitnet-chat -m tiny.gguf -n 8 --private --device cuda <prompt.txt >/dev/null
}

part_sanitizer() {
    local tool
    if ! command -v compute-sanitizer >/dev/null; then
        data='' log=/dev/null
        note 'compute-sanitizer' 0 0 'not on this machine'
        return
    fi
    step 'make tiny' model tiny.gguf
    for tool in memcheck racecheck synccheck initcheck; do
        step "$tool" sanitize $tool
        before=()
    done
}

# bench FILE WORD...: measures, and keeps the JSON in FILE and in $data. A file of an earlier run
# does not remain.
bench() {
    local file=$1
    shift
    rm -f "$file"
    call 300 bitnet-bench "$preset.gguf" --device cuda "$@" --json >"$file.new" &&
        mv "$file.new" "$file" && cat "$file" && data=$(cat "$file")
}

# Prints the rows of bench.json as lines of the table.
bench_lines() {
    local keys='"test":"([^"]*)","depth":([0-9]*),"batch":([0-9]*),"tokens_per_s":([0-9.]*)'
    sed -E 's/\{"test"/\n&/g' "$1" | sed -nE "s/.*$keys.*/\1 \2 \3 \4/p" |
        while read -r test depth batch rate; do
            printf '%-9s %-40s %s tokens/s\n' "$part" "$test$2, depth $depth, batch $batch" "$rate"
        done
}

part_timings() {
    local words
    read -ra words <<<"$bench_words"
    step "make $preset" model "$preset.gguf" --preset "$preset"
    step 'bitnet-bench' bench bench.json "${words[@]}"
    if [ "$step_status" = 0 ]; then
        sed -nE 's/.*"read_gb_per_s":([0-9]*).*"load_s":([0-9.]*).*/'"$part"`
            `'   reads \1 GB\/s, loaded in \2 s/p' bench.json >>"$part.table"
        bench_lines bench.json '' >>"$part.table"
    fi
    step 'bitnet-bench, drawn' bench sample.json "${words[@]}" -p 0 -d 0 -b 1 --sample
    [ "$step_status" != 0 ] || bench_lines sample.json ', drawn' >>"$part.table"
}

used_memory() {
    nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits | head -n 1
}

# Runs all turns in one chat and compares the used memory after a tenth of them and after all.
turns() {
    local i answer first last
    coproc chat { call 500 bitnet-chat -m tiny.gguf --lines --json -n 4 --private -q \
        --device cuda --overflow drop; }
    local in=${chat[1]} out=${chat[0]} pid=$chat_PID
    for ((i = 1; i <= n_turns; i++)); do
        echo "turn $i" >&"$in"
        read -r answer <&"$out" || return
        [[ $answer == *'"completion_tokens":'* ]] || return
        [ "$i" -ne $(((n_turns + 9) / 10)) ] || first=$(used_memory)
    done
    last=$(used_memory)
    echo "$first MiB in use after a tenth of $n_turns turns, $last after all"
    eval "exec $in>&-" # ends the input of the chat
    wait "$pid" && [ "$first" = "$last" ]
}

part_turns() {
    step 'make tiny' model tiny.gguf
    step "$n_turns turns, memory flat" turns
}

# Runs the prompt and the tokens on the GPU with these switches and compares them with the CPU's.
same_run() {
    rm -f gpu.logits gpu.tokens
    call 90 gpu_run "$preset.gguf" cuda "$n_prompt" "$n_tokens" gpu "$@" || return
    [ -s cpu.logits ] && [ -s cpu.tokens ] || { echo 'there is no result of the CPU' && return 1; }
    cmp cpu.logits gpu.logits >cmp.txt 2>&1 || keep_difference
    [ ! -s cmp.txt ] && cmp cpu.tokens gpu.tokens && echo "the bytes of the CPU"
}

# Keeps the first row of logits that differs, of the CPU and then of the GPU, and both lists of
# tokens.
keep_difference() {
    local at row_bytes row
    at=$(sed -nE 's/.* byte ([0-9]+),.*/\1/p' cmp.txt)
    [ -n "$at" ] || { cat cmp.txt && return; }
    row_bytes=$(($(stat -c %s cpu.logits) / n_prompt))
    row=$(((at - 1) / row_bytes))
    echo "the first difference: position $row, id $(((at - 1) % row_bytes / 4))"
    [ -s different.bytes ] || {
        tail -c +$((row * row_bytes + 1)) cpu.logits | head -c "$row_bytes"
        tail -c +$((row * row_bytes + 1)) gpu.logits | head -c "$row_bytes"
        cat cpu.tokens gpu.tokens
    } | replace different.bytes
}

# The output of bitnet-bench with the time of each kind of kernel.
profile() {
    call 60 bitnet-bench "$preset.gguf" --device cuda -p "$n_pp" -n "$n_tg" -d 0 -b 1 -r 1 \
        --profile
}

# Time, bytes and cache hits of each launch of a few layers. The clocks stay as they are, and the
# caches keep what earlier kernels left in them, as in a real pass.
counters() {
    local status=0 names=gpu__time_duration.sum,dram__bytes_read.sum,lts__t_sector_hit_rate.pct
    names+=,sm__warps_active.avg.pct_of_peak_sustained_active,launch__registers_per_thread
    before=(ncu --clock-control none --cache-control none --csv --page raw --metrics "$names"
        --launch-skip "$1" --launch-count "$2")
    shift 2
    call 60 "$@" || status=$?
    before=()
    return "$status"
}

counters_of_kernels() {
    counters 300 24 gpu_run "$preset.gguf" cuda 1 4 ncu no_graph &&
        counters 0 24 gpu_run "$preset.gguf" cuda "$n_prompt" 1 ncu no_graph
}

# Keeps the JSON of the measurements in micro.json and in $data, also if one of them has failed.
microbenchmarks() {
    local status=0
    rm -f micro.json
    call 60 gpu_micro >micro.json.new || status=$?
    [[ $(<micro.json.new) != *']}' ]] || mv micro.json.new micro.json
    [ ! -s micro.json ] || { cat micro.json && data=$(<micro.json); }
    return $status
}

device_tests() {
    call 90 test_cuda_backend ${ONLY_TESTS:+"only=$ONLY_TESTS"} "$@"
}

# Records what can explain why the probe refuses the device.
explain_refusal() {
    step 'probe, kernels loaded at once' with CUDA_MODULE_LOADING=EAGER call 60 gpu_run probe
    step 'probe, forced JIT' with CUDA_FORCE_PTX_JIT=1 call 60 gpu_run probe
    before=(compute-sanitizer --tool memcheck)
    step 'probe, memcheck' call 120 gpu_run probe
    before=()
}

part_first() {
    local words
    deadline=$((SECONDS + 585))
    rm -f cpu.logits cpu.tokens different.bytes clocks.csv
    nvidia-smi --query-gpu=timestamp,clocks.sm,clocks.mem,temperature.gpu,power.draw \
        --format=csv,noheader -lms 500 >clocks.csv 2>&1 &
    # The CPU makes the model and its results while the GPU is tested.
    (model "$preset.gguf" --preset "$preset" &&
        call 150 gpu_run "$preset.gguf" cpu "$n_prompt" "$n_tokens" cpu) >cpu.log 2>&1 &
    local background=$!
    step 'nvidia-smi -q' nvidia-smi -q
    step 'probe' call 60 gpu_run probe
    if [ "$step_status" != 0 ]; then
        explain_refusal
        return
    fi
    step 'device tests' device_tests
    # The driver compiles the PTX for every backend that a test opens, which takes 5 s each.
    step 'device tests, forced JIT' with CUDA_FORCE_PTX_JIT=1 call 90 test_cuda_backend \
        "only=${ONLY_TESTS:-head_requests_match_the_cpu}"
    step 'results of the CPU' wait "$background"
    step "$n_prompt ids, $n_tokens tokens" same_run
    step 'again' same_run
    step 'again, launches one by one' with CUDA_LAUNCH_BLOCKING=1 same_run
    step 'no graph' same_run no_graph
    step 'no early launch' same_run no_early_launch
    step 'no graph, no early launch' same_run no_graph no_early_launch
    step 'experts' call 90 test_cuda_experts few
    step "tg$n_tg" bench tg.json -p 0 -n "$n_tg" -d 0 -b 1 -r "$n_runs"
    step "pp$n_pp" bench pp.json -p "$n_pp" -n 0 -d 0 -b 1 -r "$n_runs"
    step "tg$n_tg, depth $n_depth" bench depth.json -p 0 -n "$n_tg" -d "$n_depth" -b 1 -r "$n_runs"
    step "tg$n_tg, batch $n_batch" bench batch.json -p 0 -n "$n_tg" -d 0 -b "$n_batch" -r "$n_runs"
    for words in tg pp depth batch; do
        [ ! -s "$words.json" ] || bench_lines "$words.json" '' >>"$part.table"
    done
    step 'times of kernels' profile
    ! command -v ncu >/dev/null || step 'counters of kernels' counters_of_kernels
    step 'microbenchmarks' microbenchmarks
    part_sanitizer
}

# run_part NAME: runs a part and replaces its table and its JSON.
run_part() {
    part=$1 n_steps=0
    : >"$part.table"
    : >"$part.steps"
    rm -f "$part".*.log
    log=/dev/null
    "part_$part"
    [ "$n_steps" -gt 0 ] || write_part
}

print_tables() {
    local name
    printf '\n%s\n' "$gpu"
    for name in "${reported_parts[@]}"; do
        [ ! -s "$name.table" ] || cat "$name.table"
    done
}

check() {
    local name
    folder=$(cd "$1" && pwd) failed=0
    shift
    [ $# -gt 0 ] || set -- "${all_parts[@]}"
    for name; do
        [[ " ${reported_parts[*]} " == *" $name "* ]] || usage
    done
    nvidia-smi >/dev/null 2>&1 || {
        echo 'skipped: nvidia-smi finds no GPU'
        exit 77
    }
    gpu=$(nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader | head -n 1)
    find_loader
    mkdir -p "$folder.work"
    cd "$folder.work"
    echo 'tell me a story' >prompt.txt
    trap 'jobs -p | xargs -r kill 2>/dev/null || true' EXIT
    for name; do
        run_part "$name"
    done
    print_tables
    exit $failed
}

case ${1:-} in
pack | collect)
    [ $# -eq 2 ] || usage
    mkdir -p "$2"
    "$1" "$(cd "$2" && pwd)"
    ;;
check)
    [ $# -ge 2 ] && [ -d "$2" ] || usage
    check "${@:2}"
    ;;
first)
    [ $# -eq 2 ] && [ -d "$2" ] || usage
    check "$2" first
    ;;
'')
    here=$(mktemp -d)
    trap 'rm -rf "$here"' EXIT
    pack "$here/pack"
    (check "$here/pack")
    ;;
*) usage ;;
esac
