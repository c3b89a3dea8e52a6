#!/usr/bin/env bash
# Runs all checks and timings of the CUDA backend on a machine with a GPU and prints a table.
#
#   run_on_gpu.sh                        builds, checks and times on this machine
#   run_on_gpu.sh pack FOLDER            builds and copies programs and libraries to FOLDER, at most
#                                        64 MB, for a GPU machine that has no compilers
#   run_on_gpu.sh check FOLDER [PART...] runs all parts, or those named, on the GPU machine
#   run_on_gpu.sh collect FOLDER         is pack without the build: copies from BUILD
#
# Parts, at most ten minutes each:
#   tests      the kernels on the twin (compiled for the host), the whole backend on the GPU
#   bytes      logits and 200 tokens equal those of the CPU, byte for byte
#   sanitizer  compute-sanitizer: memcheck, racecheck, synccheck, initcheck
#   timings    bitnet-bench on the 2B4T shape
#   turns      1,000 turns do not change the used memory of the GPU
#
# The project's own generator makes the models. They stay in FOLDER.work with the results: a table
# and results.json, which is also copied to $OUT if that is set. After a failed step the others
# still run. The exit status is 1 if a step failed, 2 for a wrong argument, 77 if there is no GPU.
# Environment: BUILD, the build folder; PRESET, the shape (default 2b4t); TOKENS, TURNS and BENCH,
# to shorten the run.
set -euo pipefail
root=$(cd "$(dirname "$0")/../../.." && pwd)
build=${BUILD:-$root/build-gpu}
preset=${PRESET:-2b4t} n_tokens=${TOKENS:-200} n_turns=${TURNS:-1000}
bench_words=${BENCH:--p 128,512 -n 128 -d 0,2048 -b 1,16 -r 5}
tests=(test_cuda_kernels test_cuda_head test_cuda_backend)
programs=("${tests[@]/#/tests/engine/cuda/}" tests/support/make_model app/bitnet-bench
    app/bitnet-inspect app/bitnet-chat)
all_parts=(tests bytes sanitizer timings turns)
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

# note NAME STATUS SECONDS [WORD]: adds a line to the part's table and an object to its JSON.
note() {
    local word=${4:-passed}
    [ "$2" = 0 ] || word="FAILED with status $2"
    printf '%-9s %-40s %s, %s s\n' "$part" "$1" "$word" "$3" >>"$part.table"
    printf '%s{"name":"%s","status":%d,"seconds":%d}' "$comma" "$1" "$2" "$3" >>"$part.json"
    comma=,
    [ "$2" = 0 ] || failed=1
}

# step NAME COMMAND...: runs the command and records its status and time.
step() {
    local name=$1 start=$SECONDS status=0
    shift
    echo "=== $part: $name"
    "$@" || status=$?
    note "$name" "$status" $((SECONDS - start))
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
    for arch in bitnet-b1.58 bitnet-25 bitnet llama; do
        step "make $arch" model "$arch.gguf" --arch "$arch"
        step "logits, $arch" same_logits "$arch.gguf" "$(seq -s, 1 "$n_tokens")"
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
        note 'compute-sanitizer' 0 0 'not on this machine'
        return
    fi
    step 'make tiny' model tiny.gguf
    for tool in memcheck racecheck synccheck initcheck; do
        step "$tool" sanitize $tool
        before=()
    done
}

bench() {
    local file=$1 words
    read -ra words <<<"$bench_words"
    call 300 bitnet-bench "$file" --device cuda "${words[@]}" --json >bench.json &&
        call 120 bitnet-bench "$file" --device cuda "${words[@]}" -p 0 -d 0 -b 1 --sample --json \
            >sample.json
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
    local name=$preset.gguf
    step "make $preset" model "$name" --preset "$preset"
    step 'bitnet-bench' bench "$name"
    [ -s sample.json ] || return 0
    printf '%s{"name":"rates","greedy":%s,"drawn":%s}' , "$(cat bench.json)" "$(cat sample.json)" \
        >>"$part.json"
    sed -nE 's/.*"read_gb_per_s":([0-9]*).*"load_s":([0-9.]*).*/'"$part"`
        `'   reads \1 GB\/s, loaded in \2 s/p' bench.json >>"$part.table"
    bench_lines bench.json '' >>"$part.table"
    bench_lines sample.json ', drawn' >>"$part.table"
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

# run_part NAME: runs a part and replaces its table and its JSON.
run_part() {
    part=$1 comma=
    : >"$part.table"
    printf '{"part":"%s","steps":[' "$part" >"$part.json"
    "part_$part"
    printf ']}' >>"$part.json"
}

# Combines the parts of this call and of earlier calls into one JSON object and one table.
report() {
    local name comma=
    local gpu
    gpu=$(nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader | head -n 1)
    printf '{"gpu":"%s","parts":[' "$gpu" >results.json
    for name in "${all_parts[@]}"; do
        [ -s "$name.json" ] || continue
        printf '%s' "$comma" >>results.json
        cat "$name.json" >>results.json
        comma=,
    done
    printf ']}\n' >>results.json
    [ -z "${OUT:-}" ] || cp results.json "$OUT/"
    printf '\n%s\n' "$gpu"
    for name in "${all_parts[@]}"; do
        [ ! -s "$name.table" ] || cat "$name.table"
    done
}

check() {
    local name
    folder=$(cd "$1" && pwd) failed=0
    shift
    [ $# -gt 0 ] || set -- "${all_parts[@]}"
    for name; do
        [[ " ${all_parts[*]} " == *" $name "* ]] || usage
    done
    nvidia-smi >/dev/null 2>&1 || {
        echo 'skipped: nvidia-smi finds no GPU'
        exit 77
    }
    find_loader
    mkdir -p "$folder.work"
    cd "$folder.work"
    echo 'tell me a story' >prompt.txt
    for name; do
        run_part "$name"
    done
    report
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
'')
    here=$(mktemp -d)
    trap 'rm -rf "$here"' EXIT
    pack "$here/pack"
    (check "$here/pack")
    ;;
*) usage ;;
esac
