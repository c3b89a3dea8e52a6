/*
 * Copies text into the clipboard, and finds code blocks in an answer.
 *
 * The first program that succeeds does the copying: wl-copy if $WAYLAND_DISPLAY is set, xclip and
 * xsel if $DISPLAY is set, pbcopy if $PATH is set. If none succeeds and standard output is a
 * terminal, the escape sequence OSC 52 is written to it. Many terminals then copy the text, also
 * through ssh. The program cannot learn whether the terminal did so.
 */
#ifndef APP_CLIPBOARD_H
#define APP_CLIPBOARD_H

#include "engine/base/error.h"
#include "engine/base/str.h"

#include <stdbool.h>
#include <stddef.h>

/* Copy text. *program is the name of the clipboard program, a static text. NULL: the text was
 * written to the terminal (OSC 52), which does not say whether it has copied it. Waits at most two
 * seconds for each program. BN_EUNSUPPORTED: no program works, and standard output is no
 * terminal. BN_EIO: OSC 52 cannot be written. BN_ENOMEM: no memory for OSC 52. */
bool clipboard_put(struct bn_str text, const char **program, struct bn_error *err);

/* The number of code blocks in a text. A block is enclosed in fences: lines that begin with three
 * or more backticks or tildes, after at most three spaces. No backtick may follow a fence of
 * backticks in its line. The closing fence is at least as long as the opening one, has the same
 * character, and only blanks follow it. The last block may lack it. */
size_t clipboard_code_count(struct bn_str text);
/* Set *code to the lines of a block, without its fences; it points into `text`. `number` counts
 * from 1. False: there is no such block, and *code is unchanged. */
bool clipboard_code_block(struct bn_str text, size_t number, struct bn_str *code);

#endif
