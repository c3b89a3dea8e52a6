/*
 * Encodes segments.
 *
 * All text of a call is joined first. Neighbouring TEMPLATE and MESSAGE segments form a run, which
 * an ANSWER or IDS segment ends. In a run, special tokens are found in the template's text, then
 * user-defined tokens in the text between them; in ANSWER text only user-defined tokens are
 * searched for. The text between these tokens consists of fragments: each is normalised, if the
 * rule of the pre-tokenizer has nfc, and cut into pieces. Because words repeat, the ids of a piece
 * are cached for the rest of the call.
 */
#include "engine/base/memory.h"
#include "engine/base/size.h"
#include "tokenizer/bpe/nfc.h"
#include "tokenizer/tokenizer_state.h"

#include <string.h>

#define CACHE_PIECE_BYTES 64   /* longer pieces rarely repeat */
#define CACHE_ENTRIES_MAX 8192 /* 192 KiB, so that the cache fits into a level 2 cache */

struct prompt_span {
    enum segment_kind kind;
    size_t start, end;             /* range in the text; empty for SEGMENT_IDS */
    const struct segment *segment; /* for SEGMENT_IDS: its ids */
};

/* A special token in the template's text. */
struct prompt_hit {
    size_t start, end; /* range in the text */
    int32_t id;
};

/* The text of all segments in one buffer. Neighbouring TEMPLATE or MESSAGE segments of the same
 * kind form one span. Empty ones of these two kinds are skipped, so template text on both sides of
 * an empty MESSAGE is one span. An empty ANSWER or IDS segment still separates two runs. */
struct prompt_text {
    char *text; /* (n_text) */
    size_t n_text;
    struct prompt_span *spans; /* (n_spans) */
    size_t n_spans;
    struct prompt_hit *hits; /* (n_hits) ordered by position */
    size_t n_hits, hits_cap;
    /* (specials.n) 1: the token may occur outside the template: it is user-defined, ends no answer
     * and does not occur in the template. */
    uint8_t *allowed_in_message;
    bool first_ok[256]; /* [b]: a token that is allowed in messages begins with byte b */
};

struct cached {
    const char *piece; /* NULL for a free entry */
    uint32_t n_bytes;
    uint32_t n_ids;
    size_t at; /* position of its ids in out->ids */
};

struct encoder {
    const struct tokenizer *t;
    struct token_list *out;
    size_t out_start; /* ids that were in `out` before the call */
    struct prompt_text prompt;
    size_t next_hit;    /* index of the next hit in prompt.hits */
    bool after_special; /* at the start or after a special token: SentencePiece adds a space here */
    char *spaced;       /* (n_spaced) fragments in the input form of SentencePiece, concatenated */
    size_t n_spaced;
    char *normal; /* (n_normal) normalised fragments, concatenated; NULL: text needs no change */
    size_t n_normal;
    struct merge merge;
    struct cached *cache; /* (n_cache), a power of two */
    size_t n_cache;
};

/* ---- the joined text ---- */

static bool check_ids(const struct tokenizer *t, const struct segment *seg, struct bn_error *err)
{
    for (size_t i = 0; i < seg->n_ids; i++) {
        if (seg->ids[i] < 0 || (size_t)seg->ids[i] >= t->vocab.n)
            return bn_fail(err, BN_EARG, "token id %d is outside the vocabulary of %zu tokens",
                           (int)seg->ids[i], t->vocab.n);
    }
    return true;
}

static bool reserve_text(struct prompt_text *p, const struct tokenizer *t,
                         const struct segment *segments, size_t n_segments, struct bn_error *err)
{
    size_t n_text = 0;
    for (size_t i = 0; i < n_segments; i++) {
        if (segments[i].kind == SEGMENT_IDS) {
            if (!check_ids(t, &segments[i], err))
                return false;
        } else if (!size_add(&n_text, n_text, segments[i].text.n_bytes) || n_text > SIZE_MAX / 2) {
            /* The limit is one half because `reserve` computes n_text * 2. */
            return bn_fail(err, BN_EARG, "the texts together are too long");
        }
    }
    p->text = mem_alloc(n_text, 1);
    p->spans = mem_alloc(n_segments, sizeof(*p->spans));
    p->allowed_in_message = mem_alloc(t->specials.n, 1);
    if (!p->text || !p->spans || !p->allowed_in_message)
        return bn_fail(err, BN_ENOMEM, "no memory to tokenise %zu bytes", n_text);
    if (t->specials.n > 0)
        memcpy(p->allowed_in_message, t->allowed_in_message, t->specials.n);
    return true;
}

/* ANSWER and IDS segments separate runs: the text on both sides is never joined. */
static bool is_separate(enum segment_kind kind)
{
    return kind == SEGMENT_IDS || kind == SEGMENT_ANSWER;
}

static void join(struct prompt_text *p, const struct segment *segments, size_t n_segments)
{
    for (size_t i = 0; i < n_segments; i++) {
        const struct segment *seg = &segments[i];
        const size_t n_bytes = seg->kind == SEGMENT_IDS ? 0 : seg->text.n_bytes;
        if (n_bytes == 0 && !is_separate(seg->kind))
            continue;
        struct prompt_span *last = p->n_spans ? &p->spans[p->n_spans - 1] : NULL;
        if (n_bytes > 0)
            memcpy(p->text + p->n_text, seg->text.ptr, n_bytes);
        if (!is_separate(seg->kind) && last && last->kind == seg->kind)
            last->end += n_bytes;
        else
            p->spans[p->n_spans++] =
                (struct prompt_span){seg->kind, p->n_text, p->n_text + n_bytes, seg};
        p->n_text += n_bytes;
    }
}

/* Find the special tokens in a span of template text. */
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
        p->allowed_in_message[found] = 0; /* in the template: messages must not produce it */
        at += n_bytes;
    }
    return true;
}

static bool prompt_text_init(struct prompt_text *p, const struct tokenizer *t,
                             const struct segment *segments, size_t n_segments,
                             struct bn_error *err)
{
    bool ok = reserve_text(p, t, segments, n_segments, err);
    if (ok)
        join(p, segments, n_segments);
    for (size_t i = 0; ok && i < p->n_spans; i++) {
        if (p->spans[i].kind == SEGMENT_TEMPLATE)
            ok = find_hits(p, t, &p->spans[i], err);
    }
    for (size_t i = 0; ok && i < t->specials.n; i++) {
        if (p->allowed_in_message[i])
            p->first_ok[(uint8_t)vocab_text(&t->vocab, t->specials.ids[i]).ptr[0]] = true;
    }
    return ok;
}

/* ---- ids ---- */

static void encoder_finish(struct encoder *e)
{
    mem_free(e->prompt.text);
    mem_free(e->prompt.spans);
    mem_free(e->prompt.hits);
    mem_free(e->prompt.allowed_in_message);
    mem_free(e->spaced);
    mem_free(e->normal);
    mem_free(e->cache);
    merge_finish(&e->merge);
}

static bool reserve(struct encoder *e, struct bn_error *err)
{
    const size_t n_text = e->prompt.n_text;
    e->n_cache = 64; /* at least; long texts have one entry per 8 bytes, about one per word */
    while (e->n_cache < CACHE_ENTRIES_MAX && e->n_cache < n_text / 8)
        e->n_cache *= 2;
    e->cache = mem_alloc(e->n_cache, sizeof(*e->cache));
    /* A fragment has at least one byte, and at most one space is added to it: factor 2. */
    e->spaced = mem_alloc(e->t->byte_level ? 0 : n_text * 2, 1);
    const bool normalise =
        e->t->nfc && !nfc_is_plain((struct bn_str){e->prompt.text, e->prompt.n_text});
    if (normalise)
        e->normal = mem_alloc(n_text, NFC_GROWTH);
    if (!e->cache || !e->spaced || (normalise && !e->normal))
        return bn_fail(err, BN_ENOMEM, "no memory to tokenise %zu bytes", n_text);
    return true;
}

static bool encode_piece(struct encoder *e, struct bn_str piece, struct bn_error *err)
{
    const struct tokenizer *t = e->t;
    return t->byte_level ? bpe_encode(&t->bpe, &t->vocab, piece, &e->merge, e->out, err)
                         : spm_encode(&t->spm, &t->vocab, piece, &e->merge, e->out, err);
}

/* Encode the next piece of a fragment. The bytes of a piece stay valid until tokenizer_encode
 * returns, so the cache can point to them. A piece replaces an earlier one in the same entry. */
static bool add_piece(void *ud, struct bn_str piece, struct bn_error *err)
{
    struct encoder *e = ud;
    struct token_list *out = e->out;
    if (piece.n_bytes > CACHE_PIECE_BYTES)
        return encode_piece(e, piece, err);
    const uint64_t hash = text_hash(piece.ptr, piece.n_bytes, 0);
    struct cached *entry = &e->cache[hash & (e->n_cache - 1)];
    if (entry->piece && bn_str_equal(piece, (struct bn_str){entry->piece, entry->n_bytes})) {
        for (size_t i = 0; i < entry->n_ids; i++) {
            if (!token_list_push(out, out->ids[entry->at + i], err))
                return false;
        }
        return true;
    }
    const size_t at = out->n;
    if (!encode_piece(e, piece, err))
        return false;
    *entry = (struct cached){piece.ptr, (uint32_t)piece.n_bytes, (uint32_t)(out->n - at), at};
    return true;
}

/* SentencePiece: add the leading space if needed, and read U+2581 as a space. */
static bool encode_spaced(struct encoder *e, struct bn_str text, struct bn_error *err)
{
    char *spaced = e->spaced + e->n_spaced;
    size_t n = 0;
    if (e->t->info.add_space_prefix && e->after_special)
        spaced[n++] = ' ';
    n += vocab_decode_spaces(text, spaced + n);
    e->n_spaced += n;
    for (size_t at = 0; at < n;) {
        const struct bn_str rest = {spaced + at, n - at};
        const struct bn_str piece = {rest.ptr, spm_piece_bytes(&e->t->spm, rest)};
        if (!add_piece(e, piece, err))
            return false;
        at += piece.n_bytes;
    }
    return true;
}

/* Encode text without special tokens. */
static bool encode_fragment(struct encoder *e, size_t start, size_t end, struct bn_error *err)
{
    if (start == end)
        return true;
    struct bn_str text = {e->prompt.text + start, end - start};
    if (e->normal) {
        char *const at = e->normal + e->n_normal;
        if (!nfc_write(text, at, &text.n_bytes, err))
            return false;
        text.ptr = at;
        e->n_normal += text.n_bytes;
    }
    const bool ok = e->t->byte_level ? pretok_split(e->t->pretok, text, add_piece, e, err)
                                     : encode_spaced(e, text, err);
    e->after_special = false;
    return ok;
}

static bool push_special(struct encoder *e, int32_t id, struct bn_error *err)
{
    e->after_special = true;
    return token_list_push(e->out, id, err);
}

/* Encode text in which only the user-defined tokens of prompt.allowed_in_message are special. */
static bool encode_ordinary(struct encoder *e, size_t start, size_t end, struct bn_error *err)
{
    const struct special_set *set = &e->t->specials;
    size_t done = start;
    for (size_t at = start; at < end;) {
        const struct bn_str rest = {e->prompt.text + at, end - at};
        const size_t found =
            e->prompt.first_ok[(uint8_t)rest.ptr[0]]
                ? special_match(set, &e->t->vocab, e->prompt.allowed_in_message, rest)
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

/* Encode a run of template and message text: the tokens in `hits`, and the text between them. */
static bool encode_run(struct encoder *e, size_t start, size_t end, struct bn_error *err)
{
    for (; e->next_hit < e->prompt.n_hits && e->prompt.hits[e->next_hit].end <= end;
         e->next_hit++) {
        const struct prompt_hit *hit = &e->prompt.hits[e->next_hit];
        if (!encode_ordinary(e, start, hit->start, err) || !push_special(e, hit->id, err))
            return false;
        start = hit->end;
    }
    return encode_ordinary(e, start, end, err);
}

/* After generated ids, SentencePiece adds a space only if the last id is a control or unknown
 * token. A user-defined one may be ordinary text of the answer. */
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
    const struct prompt_text *p = &e->prompt;
    for (size_t i = 0; i < p->n_spans;) {
        const struct prompt_span *span = &p->spans[i++];
        size_t end = span->end;
        while (!is_separate(span->kind) && i < p->n_spans && !is_separate(p->spans[i].kind))
            end = p->spans[i++].end;
        const bool ok = span->kind == SEGMENT_IDS      ? push_ids(e, span->segment, err)
                        : span->kind == SEGMENT_ANSWER ? encode_ordinary(e, span->start, end, err)
                                                       : encode_run(e, span->start, end, err);
        if (!ok)
            return false;
    }
    return true;
}

/* Put one bos in front if the vocabulary requires it, and reduce several to one. */
static bool fix_bos(struct encoder *e, struct bn_error *err)
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
    const bool ok = prompt_text_init(&e.prompt, t, segments, n_segments, err) && reserve(&e, err) &&
                    encode_all(&e, err) && (bos == TOKENIZER_BOS_NEVER || fix_bos(&e, err));
    if (!ok)
        out->n = e.out_start;
    encoder_finish(&e);
    return ok;
}
