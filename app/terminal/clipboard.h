/*
 * Text into the clipboard: by the desktop's own program where one works, else by the terminal.
 *
 * wl-copy, xclip, xsel and pbcopy are tried in this order where their display is; then, if standard
 * output is a terminal, the escape sequence OSC 52, which also works through ssh and tmux.
 */
#ifndef APP_CLIPBOARD_H
#define APP_CLIPBOARD_H

#include "engine/base/error.h"
#include "engine/base/str.h"

#include <stdbool.h>
#include <stddef.h>

/* *through names what took the text. BN_EUNSUPPORTED: nothing here takes one; BN_EIO, BN_ENOMEM.
 * Waits for a program for at most two seconds. */
bool clipboard_put(struct bn_str text, const char **through, struct bn_error *err);

/* Blocks of code between fences of three or more ` or ~, which an answer that was cut off may leave
 * open. Block 1 is the first; false: there is none of that number. */
size_t clipboard_code_count(struct bn_str text);
bool clipboard_code_block(struct bn_str text, size_t number, struct bn_str *code);

#endif
