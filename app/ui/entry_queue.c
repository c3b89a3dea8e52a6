/*
 * Lines that wait for the end of an answer: see entry_queue.h.
 */
#include "app/ui/entry_queue.h"

#include "app/common/term_text.h"
#include "engine/base/memory.h"
#include "engine/base/size.h"

#include <string.h>

void entry_queue_finish(struct entry_queue *q)
{
    for (size_t i = 0; i < q->n; i++)
        strbuf_finish(&q->items[i]);
    mem_free(q->items);
    *q = (struct entry_queue){0};
}

bool entry_queue_add(struct entry_queue *q, struct bn_str line)
{
    struct strbuf copy = {0};
    strbuf_add_str(&copy, line);
    if (copy.failed || !mem_grow(&q->items, &q->cap, q->n + 1, sizeof(*q->items))) {
        strbuf_finish(&copy);
        return false;
    }
    q->items[q->n++] = copy;
    return true;
}

bool entry_queue_take_last(struct entry_queue *q, struct strbuf *out)
{
    if (q->n == 0)
        return false;
    struct strbuf *last = &q->items[--q->n];
    strbuf_add_str(out, strbuf_str(last));
    strbuf_finish(last);
    return true;
}

bool entry_queue_take_first(struct entry_queue *q, struct strbuf *out)
{
    if (q->n == 0)
        return false;
    strbuf_finish(out);
    *out = q->items[0];
    q->n--;
    memmove(q->items, q->items + 1, q->n * sizeof(*q->items));
    return true;
}

static void add_row(const char *label, const struct strbuf *line, size_t width, struct strbuf *out)
{
    struct strbuf row = {0};
    strbuf_add_text(&row, label);
    strbuf_add_str(&row, strbuf_str(line));
    term_text_brief(strbuf_str(&row), width, out);
    strbuf_finish(&row);
}

void entry_queue_last_row(const struct entry_queue *q, size_t width, struct strbuf *out)
{
    if (q->n > 0)
        add_row(ENTRY_NEXT, &q->items[q->n - 1], width, out);
}

void entry_queue_rows(const struct entry_queue *q, const char *label, size_t width, size_t max_rows,
                      struct strbuf *out)
{
    const size_t n_shown = q->n <= max_rows ? q->n : max_rows - 1;
    for (size_t i = 0; i < n_shown; i++) {
        add_row(label, &q->items[i], width, out);
        strbuf_add_char(out, '\n');
    }
    if (n_shown < q->n) {
        struct strbuf row = {0};
        strbuf_addf(&row, "and %zu more", q->n - n_shown);
        term_text_brief(strbuf_str(&row), width, out);
        strbuf_add_char(out, '\n');
        strbuf_finish(&row);
    }
}
