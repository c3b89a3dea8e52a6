/*
 * Notes about a model file, and the test whether a repair is switched off.
 */
#include "engine/base/notes.h"

#include "engine/base/str.h"
#include "engine/base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void bn_notes_add(struct bn_notes *notes, enum bn_note_kind kind, const char *id, const char *fmt,
                  ...)
{
    if (!notes)
        return;
    if (notes->n == BN_NOTES_MAX) {
        notes->n_dropped++;
        return;
    }
    struct bn_note *note = &notes->items[notes->n++];
    note->kind = kind;
    note->id = id;
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(note->text, sizeof(note->text), fmt, args); /* cut if too long */
    va_end(args);
    utf8_drop_partial(note->text);
}

bool bn_repair_allowed(const char *no_repair, const char *id)
{
    return !no_repair || !(str_list_has(no_repair, "all") || str_list_has(no_repair, id));
}
