#!/bin/sh
# Takes the pictures of a chat from real screens: chat.sh BITNET_CHAT MODEL.gguf
# Needs tmux and python3. The picture is written beside this script.
set -eu

program=$1
model=$2
here=$(cd "$(dirname "$0")" && pwd)
state=$(mktemp -d)
socket=bitnet-picture-$$
trap 'tmux -L "$socket" kill-server 2>/dev/null || true; rm -rf "$state"' EXIT

send() { tmux -L "$socket" send-keys "$@"; }

# Wait until the screen shows a text, ten seconds at most.
expect() {
    for _ in $(seq 100); do
        if tmux -L "$socket" capture-pane -p | grep -qF -- "$1"; then
            return 0
        fi
        sleep 0.1
    done
    echo "chat.sh: '$1' did not appear" >&2
    tmux -L "$socket" capture-pane -p >&2
    return 1
}

# Say something and wait for the answer's line of numbers.
say() {
    n=$(tmux -L "$socket" capture-pane -p | grep -c 'first token' || true)
    send -l "$1"
    send Enter
    for _ in $(seq 100); do
        if [ "$(tmux -L "$socket" capture-pane -p | grep -c 'first token')" -gt "$n" ]; then
            return 0
        fi
        sleep 0.1
    done
    echo "chat.sh: no answer to '$1'" >&2
    return 1
}

tmux -L "$socket" -f /dev/null new-session -d -x 92 -y 30 \
    "env LANG=C.UTF-8 HOME=$state XDG_CACHE_HOME=$state XDG_STATE_HOME=$state \
    '$program' '$model' --temp 0 --private"
expect 'loaded in'
say 'Hello!'
say 'I live in Rome.'
say 'How do I save the chat?'
say 'Who painted the Mona Lisa?'
send -l '/undo'
send Enter
expect 'undone'
say 'Where do I live?'
send -l '/context'
send Enter
expect 'when it is full'
tmux -L "$socket" capture-pane -e -p |
    python3 "$here/screen_svg.py" --title "bitnet-chat" --columns 92 >"$here/chat.svg"
