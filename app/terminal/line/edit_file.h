/*
 * Edits a text in the user's own editor: $VISUAL, else $EDITOR, else vi.
 */
#ifndef APP_EDIT_FILE_H
#define APP_EDIT_FILE_H

#include "app/common/strbuf.h"
#include "engine/base/error.h"

/* Run the editor and wait for it. Release the terminal first. BN_EIO: the editor cannot be started
 * or failed, or the file cannot be written or read; the text is unchanged. */
bool edit_file_run(struct strbuf *text, struct bn_error *err);

#endif
