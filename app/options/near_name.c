/*
 * The edit distance of names, and the costs that choose among near names.
 */
#include "app/options/near_name.h"

#include "engine/base/size.h"

#include <string.h>

#define LONGEST 40 /* bytes of a typed text and of a name; longer ones are not near */
/* Costs above every number of edits, which is at most 9 (below NEAR_NAME_EDITS). COST_BEGINS minus
 * the bytes of the common beginning stays above COST_COMPLETES. */
#define COST_COMPLETES 100 /* one of the two is the beginning of the other */
#define COST_BEGINS 200    /* both have a beginning in common */
#define MIN_COMMON 3       /* least bytes of this common beginning */

/* The edits that turn a into b. Row i of the table has the edits from the first i bytes of a to
 * each beginning of b; an exchange of neighbours needs the two rows before. */
static size_t count_edits(struct bn_str a, struct bn_str b)
{
    size_t rows[3][LONGEST + 1];
    for (size_t j = 0; j <= b.n_bytes; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= a.n_bytes; i++) {
        size_t *row = rows[i % 3];
        const size_t *above = rows[(i + 2) % 3], *above2 = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= b.n_bytes; j++) {
            const size_t replaced = above[j - 1] + (a.ptr[i - 1] != b.ptr[j - 1]);
            row[j] = size_min(replaced, size_min(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a.ptr[i - 1] == b.ptr[j - 2] && a.ptr[i - 2] == b.ptr[j - 1])
                row[j] = size_min(row[j], above2[j - 2] + 1);
        }
    }
    return rows[a.n_bytes % 3][b.n_bytes];
}

static size_t common_beginning(struct bn_str a, struct bn_str b)
{
    size_t n = 0;
    while (n < a.n_bytes && n < b.n_bytes && a.ptr[n] == b.ptr[n])
        n++;
    return n;
}

/* The fewer edits, or else the longer the common beginning, the smaller the cost. SIZE_MAX: not
 * near. */
static size_t cost_of(struct bn_str typed, struct bn_str name)
{
    if (typed.n_bytes == 0 || typed.n_bytes > LONGEST || name.n_bytes > LONGEST)
        return SIZE_MAX;
    const size_t n_edits = count_edits(typed, name);
    if (n_edits <= 1 + typed.n_bytes / 5 && n_edits < typed.n_bytes)
        return n_edits;
    const size_t n_common = common_beginning(typed, name);
    if (n_common == typed.n_bytes || (n_common == name.n_bytes && n_common >= MIN_COMMON))
        return COST_COMPLETES;
    return n_common >= MIN_COMMON ? COST_BEGINS - n_common : SIZE_MAX;
}

bool near_name_add(struct near_name *n, const char *name)
{
    const size_t cost = cost_of(n->typed, (struct bn_str){name, strlen(name)});
    if (cost == SIZE_MAX || (n->best && cost >= n->cost))
        return false;
    n->best = name;
    n->cost = cost;
    return true;
}
