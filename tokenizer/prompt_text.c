/*
 * Joins the segments of a call and finds special tokens in the template's text.
 */
#include "tokenizer/prompt_text.h"

#include "engine/base/memory.h"
#include "engine/base/size.h"

#include <string.h>

static bool check_ids(const struct tokenizer *t, const struct segment *seg, struct bn_error *err)
{
    for (size_t i = 0; i < seg->n_ids; i++) {
        if (seg->ids[i] < 0 || (size_t)seg->ids[i] >= t->vocab.n)
            return bn_fail(err, BN_EARG, "token id %d is outside the vocabulary of %zu tokens",
                           (int)seg->ids[i], t->vocab.n);
    }
    return true;
}

static bool reserve(struct prompt_text *p, const struct tokenizer *t,
                    const struct segment *segments, size_t n_segments, struct bn_error *err)
{
    size_t n_text = 0;
    for (size_t i = 0; i < n_segments; i++) {
        if (segments[i].kind == SEGMENT_IDS) {
            if (!check_ids(t, &segments[i], err))
                return false;
        } else if (!size_add(&n_text, n_text, segments[i].text.n_bytes) || n_text > SIZE_MAX / 2) {
            return bn_fail(err, BN_EARG, "the texts together are too long");
        }
    }
    p->text = mem_alloc(n_text, 1);
    p->spans = mem_alloc(n_segments, sizeof(*p->spans));
    p->message_ok = mem_alloc(t->specials.n, 1);
    if (!p->text || !p->spans || !p->message_ok)
        return bn_fail(err, BN_ENOMEM, "no memory to tokenise %zu bytes", n_text);
    if (t->specials.n > 0)
        memcpy(p->message_ok, t->message_ok, t->specials.n);
    return true;
}

static void join(struct prompt_text *p, const struct segment *segments, size_t n_segments)
{
    for (size_t i = 0; i < n_segments; i++) {
        const struct segment *seg = &segments[i];
        const size_t n_bytes = seg->kind == SEGMENT_IDS ? 0 : seg->text.n_bytes;
        const bool is_separate = seg->kind == SEGMENT_IDS || seg->kind == SEGMENT_ANSWER;
        if (n_bytes == 0 && !is_separate)
            continue;
        struct prompt_span *last = p->n_spans ? &p->spans[p->n_spans - 1] : NULL;
        if (n_bytes > 0)
            memcpy(p->text + p->n_text, seg->text.ptr, n_bytes);
        if (!is_separate && last && last->kind == seg->kind)
            last->end += n_bytes;
        else
            p->spans[p->n_spans++] =
                (struct prompt_span){seg->kind, p->n_text, p->n_text + n_bytes, seg};
        p->n_text += n_bytes;
    }
}

static bool find_hits(struct prompt_text *p, const struct tokenizer *t,
                      const struct prompt_span *span, struct bn_error *err)
{
    const struct special_set *set = &t->specials;
    for (size_t at = span->start; at < span->end;) {
        const struct bn_str rest = {p->text + at, span->end - at};
        const size_t found = special_match(set, &t->vocab, NULL, rest);
        if (found == SPECIAL_NONE) {
            at++;
            continue;
        }
        const size_t n_bytes = vocab_text(&t->vocab, set->ids[found]).n_bytes;
        if (!mem_grow(&p->hits, &p->hits_cap, p->n_hits + 1, sizeof(*p->hits)))
            return bn_fail(err, BN_ENOMEM, "no memory for the special tokens of a prompt");
        p->hits[p->n_hits++] = (struct prompt_hit){at, at + n_bytes, set->ids[found]};
        p->message_ok[found] = 0; /* in the template: messages must not produce it */
        at += n_bytes;
    }
    return true;
}

bool prompt_text_init(struct prompt_text *p, const struct tokenizer *t,
                      const struct segment *segments, size_t n_segments, struct bn_error *err)
{
    *p = (struct prompt_text){0};
    bool ok = reserve(p, t, segments, n_segments, err);
    if (ok)
        join(p, segments, n_segments);
    for (size_t i = 0; ok && i < p->n_spans; i++) {
        if (p->spans[i].kind == SEGMENT_TEMPLATE)
            ok = find_hits(p, t, &p->spans[i], err);
    }
    for (size_t i = 0; ok && i < t->specials.n; i++) {
        if (p->message_ok[i])
            p->first_ok[(uint8_t)vocab_text(&t->vocab, t->specials.ids[i]).ptr[0]] = true;
    }
    if (!ok)
        prompt_text_finish(p);
    return ok;
}

void prompt_text_finish(struct prompt_text *p)
{
    mem_free(p->text);
    mem_free(p->spans);
    mem_free(p->hits);
    mem_free(p->message_ok);
    *p = (struct prompt_text){0};
}
