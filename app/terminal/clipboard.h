/*
 * Copies text into the clipboard, and finds code blocks in an answer.
 *
 * A desktop program does the copying where one works: wl-copy, xclip and xsel are tried in this
 * order if their display is set, and then pbcopy. Otherwise, if standard output is a terminal, the
 * escape sequence OSC 52 is written, which also works through ssh and tmux.
 */
#ifndef APP_CLIPBOARD_H
#define APP_CLIPBOARD_H

#include "engine/base/error.h"
#include "engine/base/str.h"

#include <stdbool.h>
#include <stddef.h>

/* Copy text. *method names the program, or the terminal. Waits at most two seconds for each
 * program. BN_EUNSUPPORTED: there is no clipboard; BN_EIO; BN_ENOMEM. */
bool clipboard_put(struct bn_str text, const char **method, struct bn_error *err);

/* Code blocks are enclosed in fences of three or more ` or ~. The last block may lack its closing
 * fence. `number` counts from 1; clipboard_code_block returns false if there is no such block. */
size_t clipboard_code_count(struct bn_str text);
bool clipboard_code_block(struct bn_str text, size_t number, struct bn_str *code);

#endif
