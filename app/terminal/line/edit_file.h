/*
 * A text in the user's own editor: $VISUAL, else $EDITOR, else vi.
 */
#ifndef APP_EDIT_FILE_H
#define APP_EDIT_FILE_H

#include "app/common/strbuf.h"
#include "engine/base/error.h"

/* Waits for the editor; the terminal must have been given back. BN_EIO: it cannot be started,
 * failed, or the file cannot be written or read; the text is unchanged then. */
bool edit_file_run(struct strbuf *text, struct bn_error *err);

#endif
