/*
 * Drafts out of the text itself: what followed when the last tokens stood there before. Pure.
 */
#ifndef ENGINE_SPEC_DRAFT_H
#define ENGINE_SPEC_DRAFT_H

#include <stddef.h>
#include <stdint.h>

#define SPEC_MATCH_MAX 32   /* longer matches count as so long */
#define SPEC_MATCH_ENOUGH 4 /* of matches as long as this the latest is taken */

/* The longest end of ids that stands in them earlier too, the latest such place if there are
 * several, or if it is long enough: its length, 0 if the last id is new. What followed it, going on
 * into the draft itself where that reaches the end, to out (n): a repetition is continued for as
 * long as is asked. */
size_t spec_draft(const int32_t *ids, size_t n_ids, int32_t *out, size_t n);

#endif
