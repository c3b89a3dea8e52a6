/*
 * Segments to ids.
 *
 * All text of a call is joined first; TEMPLATE and MESSAGE text between two segments that stand
 * alone is a run. Special tokens are cut out of the template's stretches, then user-defined tokens
 * out of what lies between, and only then is the rest cut into pieces. Words repeat: a piece that
 * was met before in the call is copied from the ids it gave then.
 */
#include "engine/base/memory.h"
#include "engine/base/size.h"
#include "tokenizer/tokenizer_state.h"

#include <string.h>

#define CACHE_PIECE_BYTES 64 /* longer pieces hardly ever repeat */
#define CACHE_ENTRIES_MAX 8192

/* Neighbouring segments of one kind, as a range of the joined text. */
struct stretch {
    enum segment_kind kind;
    size_t start, end;
    const struct segment *ids; /* SEGMENT_IDS */
};

struct hit {
    size_t start, end;
    int32_t id;
};

struct cached {
    const char *piece; /* NULL: free */
    uint32_t n_bytes;
    uint32_t n_ids;
    size_t at; /* in out->ids */
};

struct encoder {
    const struct tokenizer *t;
    struct token_list *out;
    size_t out_start;
    char *text; /* (n_text) all segments' text, joined */
    size_t n_text;
    struct stretch *stretches; /* (n_stretches) */
    size_t n_stretches;
    struct hit *hits; /* (n_hits) special tokens in template text, ascending */
    size_t n_hits, hits_cap;
    size_t next_hit;
    uint8_t *message_ok; /* (specials.n) message_ok less those that the template uses */
    bool first_ok[256];  /* a text allowed by message_ok begins with this byte */
    bool after_special;  /* at the start, or behind a special token */
    char *spaced;        /* (n_spaced) fragments as SentencePiece takes them, one after the other */
    size_t n_spaced;
    struct merge merge;
    struct cached *cache; /* (n_cache), a power of two */
    size_t n_cache;
};

static void encoder_finish(struct encoder *e)
{
    mem_free(e->text);
    mem_free(e->stretches);
    mem_free(e->hits);
    mem_free(e->message_ok);
    mem_free(e->spaced);
    mem_free(e->cache);
    merge_finish(&e->merge);
}

static bool check_ids(const struct encoder *e, const struct segment *seg, struct bn_error *err)
{
    for (size_t i = 0; i < seg->n_ids; i++) {
        if (seg->ids[i] < 0 || (size_t)seg->ids[i] >= e->t->vocab.n)
            return bn_fail(err, BN_EARG, "id %d is no token of a vocabulary of %zu",
                           (int)seg->ids[i], e->t->vocab.n);
    }
    return true;
}

static bool reserve(struct encoder *e, const struct segment *segments, size_t n_segments,
                    struct bn_error *err)
{
    size_t n_text = 0;
    for (size_t i = 0; i < n_segments; i++) {
        if (segments[i].kind == SEGMENT_IDS) {
            if (!check_ids(e, &segments[i], err))
                return false;
        } else if (!size_add(&n_text, n_text, segments[i].text.n_bytes) || n_text > SIZE_MAX / 2) {
            return bn_fail(err, BN_EARG, "the texts together are too long");
        }
    }
    e->n_cache = 64;
    while (e->n_cache < CACHE_ENTRIES_MAX && e->n_cache < n_text / 8)
        e->n_cache *= 2;
    e->text = mem_alloc(n_text, 1);
    e->spaced = mem_alloc(e->t->byte_level ? 0 : n_text * 2, 1); /* a fragment adds one space */
    e->stretches = mem_alloc(n_segments, sizeof(*e->stretches));
    e->message_ok = mem_alloc(e->t->specials.n, 1);
    e->cache = mem_alloc(e->n_cache, sizeof(*e->cache));
    if (!e->text || !e->spaced || !e->stretches || !e->message_ok || !e->cache)
        return bn_fail(err, BN_ENOMEM, "no memory to tokenise %zu bytes", n_text);
    if (e->t->specials.n > 0)
        memcpy(e->message_ok, e->t->message_ok, e->t->specials.n);
    return true;
}

/* Join the texts. An empty MESSAGE is nothing: the template's text around it is one stretch. */
static void join(struct encoder *e, const struct segment *segments, size_t n_segments)
{
    for (size_t i = 0; i < n_segments; i++) {
        const struct segment *seg = &segments[i];
        const size_t n_bytes = seg->kind == SEGMENT_IDS ? 0 : seg->text.n_bytes;
        const bool alone = seg->kind == SEGMENT_IDS || seg->kind == SEGMENT_ANSWER;
        if (n_bytes == 0 && !alone)
            continue;
        struct stretch *last = e->n_stretches ? &e->stretches[e->n_stretches - 1] : NULL;
        if (n_bytes > 0)
            memcpy(e->text + e->n_text, seg->text.ptr, n_bytes);
        if (!alone && last && last->kind == seg->kind)
            last->end += n_bytes;
        else
            e->stretches[e->n_stretches++] =
                (struct stretch){seg->kind, e->n_text, e->n_text + n_bytes, seg};
        e->n_text += n_bytes;
    }
}

/* Special tokens in a stretch of the template's own text. */
static bool find_hits(struct encoder *e, const struct stretch *stretch, struct bn_error *err)
{
    const struct special_set *set = &e->t->specials;
    for (size_t at = stretch->start; at < stretch->end;) {
        const struct bn_str rest = {e->text + at, stretch->end - at};
        const size_t found = special_match(set, &e->t->vocab, NULL, rest);
        if (found == SPECIAL_NONE) {
            at++;
            continue;
        }
        const size_t n_bytes = vocab_text(&e->t->vocab, set->ids[found]).n_bytes;
        if (!mem_grow(&e->hits, &e->hits_cap, e->n_hits + 1, sizeof(*e->hits)))
            return bn_fail(err, BN_ENOMEM, "no memory for the special tokens of a prompt");
        e->hits[e->n_hits++] = (struct hit){at, at + n_bytes, set->ids[found]};
        e->message_ok[found] = 0; /* the template's own: nobody else may write it */
        at += n_bytes;
    }
    return true;
}

static bool find_all_hits(struct encoder *e, struct bn_error *err)
{
    const struct special_set *set = &e->t->specials;
    for (size_t i = 0; i < e->n_stretches; i++) {
        if (e->stretches[i].kind == SEGMENT_TEMPLATE && !find_hits(e, &e->stretches[i], err))
            return false;
    }
    for (size_t i = 0; i < set->n; i++) {
        if (e->message_ok[i])
            e->first_ok[(uint8_t)vocab_text(&e->t->vocab, set->ids[i]).ptr[0]] = true;
    }
    return true;
}

static bool encode_piece(struct encoder *e, struct bn_str piece, struct bn_error *err)
{
    const struct tokenizer *t = e->t;
    return t->byte_level ? bpe_encode(&t->bpe, &t->vocab, piece, &e->merge, e->out, err)
                         : spm_encode(&t->spm, &t->vocab, piece, &e->merge, e->out, err);
}

/* The pieces of a fragment, in order. A piece stays where it is until the call ends. */
static bool take_piece(void *ud, struct bn_str piece, struct bn_error *err)
{
    struct encoder *e = ud;
    struct token_list *out = e->out;
    if (piece.n_bytes > CACHE_PIECE_BYTES)
        return encode_piece(e, piece, err);
    const uint64_t hash = text_hash(piece.ptr, piece.n_bytes, 0);
    struct cached *known = &e->cache[hash & (e->n_cache - 1)];
    if (known->piece && bn_str_equal(piece, (struct bn_str){known->piece, known->n_bytes})) {
        for (size_t i = 0; i < known->n_ids; i++) {
            if (!token_list_push(out, out->ids[known->at + i], err))
                return false;
        }
        return true;
    }
    const size_t at = out->n;
    if (!encode_piece(e, piece, err))
        return false;
    *known = (struct cached){piece.ptr, (uint32_t)piece.n_bytes, (uint32_t)(out->n - at), at};
    return true;
}

/* SentencePiece: a space in front where one is due, U+2581 and spaces alike. */
static bool encode_spaced(struct encoder *e, struct bn_str text, struct bn_error *err)
{
    static const char mark[] = "\xE2\x96\x81"; /* U+2581 */
    const size_t mark_bytes = sizeof(mark) - 1;
    char *spaced = e->spaced + e->n_spaced;
    size_t n = 0;
    if (e->t->info.add_space_prefix && e->after_special)
        spaced[n++] = ' ';
    for (size_t at = 0; at < text.n_bytes;) {
        const bool is_mark =
            text.n_bytes - at >= mark_bytes && memcmp(text.ptr + at, mark, mark_bytes) == 0;
        spaced[n++] = is_mark ? ' ' : text.ptr[at];
        at += is_mark ? mark_bytes : 1;
    }
    e->n_spaced += n;
    for (size_t at = 0; at < n;) {
        const struct bn_str rest = {spaced + at, n - at};
        const struct bn_str piece = {rest.ptr, spm_piece_bytes(&e->t->spm, rest)};
        if (!take_piece(e, piece, err))
            return false;
        at += piece.n_bytes;
    }
    return true;
}

/* Text without any special token in it. */
static bool encode_fragment(struct encoder *e, size_t start, size_t end, struct bn_error *err)
{
    if (start == end)
        return true;
    const struct bn_str text = {e->text + start, end - start};
    const bool ok = e->t->byte_level ? pretok_split(e->t->pretok, text, take_piece, e, err)
                                     : encode_spaced(e, text, err);
    e->after_special = false;
    return ok;
}

static bool push_special(struct encoder *e, int32_t id, struct bn_error *err)
{
    e->after_special = true;
    return token_list_push(e->out, id, err);
}

/* Ordinary text: somebody's words, joined with what the template has around them. */
static bool encode_ordinary(struct encoder *e, size_t start, size_t end, struct bn_error *err)
{
    const struct special_set *set = &e->t->specials;
    size_t done = start;
    for (size_t at = start; at < end;) {
        const struct bn_str rest = {e->text + at, end - at};
        const size_t found = e->first_ok[(uint8_t)rest.ptr[0]]
                                 ? special_match(set, &e->t->vocab, e->message_ok, rest)
                                 : SPECIAL_NONE;
        if (found == SPECIAL_NONE) {
            at++;
            continue;
        }
        const int32_t id = set->ids[found];
        if (!encode_fragment(e, done, at, err) || !push_special(e, id, err))
            return false;
        at += vocab_text(&e->t->vocab, id).n_bytes;
        done = at;
    }
    return encode_fragment(e, done, end, err);
}

/* A run of template and message text, with the template's special tokens in it. */
static bool encode_run(struct encoder *e, size_t start, size_t end, struct bn_error *err)
{
    for (; e->next_hit < e->n_hits && e->hits[e->next_hit].end <= end; e->next_hit++) {
        const struct hit *hit = &e->hits[e->next_hit];
        if (!encode_ordinary(e, start, hit->start, err) || !push_special(e, hit->id, err))
            return false;
        start = hit->end;
    }
    return encode_ordinary(e, start, end, err);
}

static bool push_ids(struct encoder *e, const struct segment *seg, struct bn_error *err)
{
    for (size_t i = 0; i < seg->n_ids; i++) {
        if (!token_list_push(e->out, seg->ids[i], err))
            return false;
    }
    if (seg->n_ids > 0)
        e->after_special = tokenizer_is_control(e->t, seg->ids[seg->n_ids - 1]);
    return true;
}

static bool encode_all(struct encoder *e, struct bn_error *err)
{
    for (size_t i = 0; i < e->n_stretches;) {
        const struct stretch *stretch = &e->stretches[i++];
        size_t end = stretch->end;
        bool ok;
        if (stretch->kind == SEGMENT_IDS) {
            ok = push_ids(e, stretch->ids, err);
        } else if (stretch->kind == SEGMENT_ANSWER) {
            ok = encode_ordinary(e, stretch->start, end, err);
        } else {
            for (; i < e->n_stretches && (e->stretches[i].kind == SEGMENT_TEMPLATE ||
                                          e->stretches[i].kind == SEGMENT_MESSAGE);
                 i++)
                end = e->stretches[i].end;
            ok = encode_run(e, stretch->start, end, err);
        }
        if (!ok)
            return false;
    }
    return true;
}

/* One bos in front where the vocabulary wants it, never two. */
static bool settle_bos(struct encoder *e, struct bn_error *err)
{
    struct token_list *out = e->out;
    const int32_t bos = e->t->info.bos;
    if (bos == TOKEN_NONE)
        return true;
    size_t n_bos = 0;
    while (e->out_start + n_bos < out->n && out->ids[e->out_start + n_bos] == bos)
        n_bos++;
    if (n_bos == 0 && e->t->info.add_bos) {
        if (!token_list_push(out, bos, err))
            return false;
        int32_t *ids = out->ids + e->out_start;
        memmove(ids + 1, ids, (out->n - e->out_start - 1) * sizeof(*ids));
        ids[0] = bos;
    } else if (n_bos > 1) {
        int32_t *ids = out->ids + e->out_start;
        memmove(ids + 1, ids + n_bos, (out->n - e->out_start - n_bos) * sizeof(*ids));
        out->n -= n_bos - 1;
    }
    return true;
}

bool tokenizer_encode(const struct tokenizer *t, const struct segment *segments, size_t n_segments,
                      enum tokenizer_bos bos, struct token_list *out, struct bn_error *err)
{
    struct encoder e = {.t = t, .out = out, .out_start = out->n, .after_special = true};
    bool ok = reserve(&e, segments, n_segments, err);
    if (ok) {
        join(&e, segments, n_segments);
        ok = find_all_hits(&e, err) && encode_all(&e, err) &&
             (bos == TOKENIZER_BOS_NEVER || settle_bos(&e, err));
    }
    if (!ok)
        out->n = e.out_start;
    encoder_finish(&e);
    return ok;
}
