/*
 * Edits a text in the user's own editor: $VISUAL, else $EDITOR, else vi.
 */
#ifndef APP_EDIT_FILE_H
#define APP_EDIT_FILE_H

#include "app/common/strbuf.h"
#include "engine/base/error.h"

/* Write *text to a file in $TMPDIR (else /tmp), run the editor on it, wait for its end, and replace
 * *text by the contents of the file, cleaned by input_clean (input_text.h) and without one newline
 * at the end. The file is then deleted, also after an error. Release the terminal first
 * (tty_release). BN_EIO: the editor cannot be started or failed, or the file cannot be written or
 * read, or has more than INPUT_MAX_BYTES. BN_EARG: the edited text is binary. BN_ENOMEM. After an
 * error *text is unchanged. */
bool edit_file_run(struct strbuf *text, struct bn_error *err);

#endif
