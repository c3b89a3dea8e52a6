/*
 * A plain backward search: some microseconds in a context of thousands, where evaluating a token
 * takes milliseconds.
 *
 * The latest of long matches, not the longest: text that repeats itself goes on as it did a moment
 * ago, while the longer match may be where an earlier repetition came to its end.
 */
#include "engine/spec_draft.h"

size_t spec_draft(const int32_t *ids, size_t n_ids, int32_t *out, size_t n)
{
    size_t best = 0, end = 0; /* the match ends before `end` */
    for (size_t j = n_ids; j-- > 1 && best < SPEC_MATCH_ENOUGH;) {
        size_t length = 0; /* ids[j - 1] against the last one, and so on downward */
        while (length < j && length < SPEC_MATCH_MAX &&
               ids[j - 1 - length] == ids[n_ids - 1 - length])
            length++;
        if (length > best) {
            best = length;
            end = j;
        }
    }
    for (size_t i = 0; best > 0 && i < n; i++)
        out[i] = end + i < n_ids ? ids[end + i] : out[end + i - n_ids];
    return best;
}
