/*
 * The streaming detokeniser.
 *
 * A Knuth-Morris-Pratt automaton per stop string reads the text byte by byte. Its state is the
 * length of the longest prefix of the stop string that the text ends with. The longest of these
 * prefixes is held back, and so is an incomplete UTF-8 character before it. The stop string that is
 * complete first wins; of several that end at the same byte, the longest wins. So the result does
 * not depend on the way the text is split into tokens.
 */
#include "engine/base/memory.h"
#include "engine/base/size.h"
#include "engine/base/utf8.h"
#include "tokenizer/tokenizer_state.h"

#include <string.h>

struct stop {
    char *text; /* (n_bytes) */
    /* (n_bytes) KMP table: back[i] is the length of the longest prefix of the stop string, shorter
     * than i + 1, with which its first i + 1 bytes end. */
    size_t *back;
    size_t n_bytes;
    size_t n_seen; /* bytes of this stop string that the text ends with */
};

struct detok {
    const struct tokenizer *t;
    struct stop *stops; /* (n_stops) */
    size_t n_stops;
    enum tokenizer_special special;
    /* If the first byte is a space, remove it. False from the first byte on; false at the start too
     * if the text continues or the tokenizer adds no space. */
    bool drop_space;
    bool stopped;
    char *text; /* (n_text) the bytes returned by the last call, then the pending ones */
    size_t n_text, text_cap;
    size_t n_returned; /* bytes of `text` returned by the last call */
    size_t n_checked;  /* bytes of `text` that the automata have read */
};

static bool stop_init(struct stop *stop, const char *text, struct bn_error *err)
{
    stop->n_bytes = strlen(text);
    stop->text = mem_alloc(stop->n_bytes, 1);
    stop->back = mem_alloc(stop->n_bytes, sizeof(*stop->back));
    if (!stop->text || !stop->back)
        return bn_fail(err, BN_ENOMEM, "no memory for a stop string of %zu bytes", stop->n_bytes);
    if (stop->n_bytes == 0)
        return bn_fail(err, BN_EARG, "a stop string is empty");
    memcpy(stop->text, text, stop->n_bytes);
    for (size_t i = 1, n = 0; i < stop->n_bytes; i++) {
        while (n > 0 && text[i] != text[n])
            n = stop->back[n - 1];
        n += text[i] == text[n];
        stop->back[i] = n;
    }
    return true;
}

bool detok_open(const struct tokenizer *t, const struct detok_config *cfg, struct detok **out,
                struct bn_error *err)
{
    struct detok *d = mem_alloc(1, sizeof(*d));
    if (!d)
        return bn_fail(err, BN_ENOMEM, "no memory for the detokeniser");
    d->t = t;
    d->special = cfg->special;
    d->drop_space = cfg->at_start && t->info.add_space_prefix;
    d->stops = mem_alloc(cfg->n_stops, sizeof(*d->stops));
    /* The text gets one byte now, so that its pointer is never NULL. */
    bool ok = (d->stops && mem_grow(&d->text, &d->text_cap, 1, 1)) ||
              bn_fail(err, BN_ENOMEM, "no memory for %zu stop strings", cfg->n_stops);
    for (; ok && d->n_stops < cfg->n_stops; d->n_stops++)
        ok = stop_init(&d->stops[d->n_stops], cfg->stops[d->n_stops], err);
    if (ok)
        *out = d;
    else
        detok_close(d);
    return ok;
}

void detok_close(struct detok *d)
{
    if (!d)
        return;
    for (size_t i = 0; i < d->n_stops; i++) {
        mem_free(d->stops[i].text);
        mem_free(d->stops[i].back);
    }
    mem_free(d->stops);
    mem_free(d->text);
    mem_free(d);
}

/* Remove the bytes that were returned, then append the bytes of the id. */
static bool append(struct detok *d, int32_t id, struct bn_error *err)
{
    d->n_text -= d->n_returned;
    d->n_checked -= d->n_returned;
    if (d->n_returned > 0 && d->n_text > 0)
        memmove(d->text, d->text + d->n_returned, d->n_text);
    d->n_returned = 0;
    struct bn_str piece = tokenizer_piece(d->t, id, d->special);
    const bool is_first = d->drop_space && piece.n_bytes > 0;
    if (is_first && piece.ptr[0] == ' ')
        piece = (struct bn_str){piece.ptr + 1, piece.n_bytes - 1};
    size_t need;
    if (!size_add(&need, d->n_text, piece.n_bytes) || !mem_grow(&d->text, &d->text_cap, need, 1))
        return bn_fail(err, BN_ENOMEM, "no memory for the text of an answer");
    if (piece.n_bytes > 0)
        memcpy(d->text + d->n_text, piece.ptr, piece.n_bytes);
    d->drop_space = d->drop_space && !is_first;
    d->n_text = need;
    return true;
}

/* Feed one byte. Returns the length of the longest stop string that is now complete, else 0. The
 * search ends with a complete stop string, so n_seen < n_bytes holds at the start. */
static size_t advance(struct detok *d, char byte)
{
    size_t n_complete = 0;
    for (size_t i = 0; i < d->n_stops; i++) {
        struct stop *stop = &d->stops[i];
        while (stop->n_seen > 0 && stop->text[stop->n_seen] != byte)
            stop->n_seen = stop->back[stop->n_seen - 1];
        stop->n_seen += stop->text[stop->n_seen] == byte;
        if (stop->n_seen == stop->n_bytes)
            n_complete = size_max(n_complete, stop->n_bytes);
    }
    return n_complete;
}

/* Number of bytes at the end of the text that may begin a stop string. */
static size_t held_bytes(const struct detok *d)
{
    size_t n = 0;
    for (size_t i = 0; i < d->n_stops; i++)
        n = size_max(n, d->stops[i].n_seen);
    return n;
}

bool detok_push(struct detok *d, int32_t id, struct bn_str *text, bool *stopped,
                struct bn_error *err)
{
    if (!d->stopped && !append(d, id, err))
        return false;
    while (!d->stopped && d->n_checked < d->n_text) {
        const size_t n_complete = advance(d, d->text[d->n_checked++]);
        if (n_complete == 0)
            continue;
        d->stopped = true;
        d->n_returned = d->n_checked - n_complete;
        d->n_text = d->n_checked = d->n_returned;
        *text = (struct bn_str){d->text, d->n_returned};
        *stopped = true;
        return true;
    }
    size_t n_ready = 0;
    if (!d->stopped) {
        n_ready = d->n_text - held_bytes(d);
        n_ready -= utf8_partial_bytes(d->text, n_ready);
    }
    d->n_returned = n_ready;
    *text = (struct bn_str){d->text, n_ready};
    *stopped = d->stopped;
    return true;
}

struct bn_str detok_flush(struct detok *d)
{
    const struct bn_str rest = {d->text + (d->stopped ? 0 : d->n_returned),
                                d->stopped ? 0 : d->n_text - d->n_returned};
    d->n_returned = d->n_checked = d->n_text;
    for (size_t i = 0; i < d->n_stops; i++)
        d->stops[i].n_seen = 0;
    return rest;
}
