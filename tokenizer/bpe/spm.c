/*
 * SentencePiece encoding with the merge loop of BPE. The rank of a pair is its score as an integer:
 * a higher score gives a lower rank.
 *
 * If no token contains a space after a character that is not a space, no merge crosses such a
 * position. Then text can be cut there into words, and the cache of encode.c is useful, because
 * words repeat and whole paragraphs do not.
 */
#include "tokenizer/bpe/spm.h"

#include "engine/base/memory.h"
#include "engine/base/utf8.h"

#include <string.h>

#define NO_TOKEN UINT32_MAX /* a character that is no token; emit_bytes writes its bytes */

#define RANK_MAX (MERGE_NO_RANK - 1) /* the last rank that still merges */

/* A higher score gives a lower rank; equal scores give equal ranks. */
static uint32_t rank_of_score(float score)
{
    uint32_t bits;
    if (score != score)
        return RANK_MAX;
    score += 0.0f; /* turns -0 into 0 */
    memcpy(&bits, &score, sizeof(bits));
    /* Makes the bits ascend with the value: invert negatives, set the sign bit of positives. */
    const uint32_t ascending = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
    return ~ascending; /* at most 0xFF800000, for -INFINITY, so below RANK_MAX */
}

static bool has_space_inside(struct bn_str text)
{
    for (size_t i = 1; i < text.n_bytes; i++) {
        if (text.ptr[i] == ' ' && text.ptr[i - 1] != ' ')
            return true;
    }
    return false;
}

bool spm_init(struct spm *s, const struct vocab *v, const float *scores, int32_t unk,
              struct bn_error *err)
{
    *s = (struct spm){.unk = unk, .splits_at_spaces = true};
    s->ranks = mem_alloc(v->n, sizeof(*s->ranks));
    if (!s->ranks)
        return bn_fail(err, BN_ENOMEM, "no memory for %zu token scores", v->n);
    for (size_t i = 0; i < v->n; i++) {
        s->ranks[i] = rank_of_score(scores[i]);
        const struct bn_str text = vocab_text(v, (int32_t)i);
        if (has_space_inside(text) && vocab_find(v, text, VOCAB_WORD) >= 0)
            s->splits_at_spaces = false;
    }
    return true;
}

void spm_finish(struct spm *s)
{
    mem_free(s->ranks);
    *s = (struct spm){0};
}

size_t spm_piece_bytes(const struct spm *s, struct bn_str text)
{
    if (!s->splits_at_spaces)
        return text.n_bytes;
    size_t at = 1;
    while (at < text.n_bytes && !(text.ptr[at] == ' ' && text.ptr[at - 1] != ' '))
        at++;
    return at;
}

struct spm_rules {
    const struct spm *s;
    const struct vocab *v;
    struct bn_str piece;
};

static void spm_pair_of(const void *rules, struct merge_symbol *symbols, uint32_t left,
                        uint32_t right)
{
    const struct spm_rules *r = rules;
    const struct bn_str text = {r->piece.ptr + left, symbols[right].next - left};
    symbols[left].rank = MERGE_NO_RANK;
    if (text.n_bytes > r->v->longest_word)
        return;
    const int32_t id = vocab_find(r->v, text, VOCAB_WORD);
    if (id >= 0) {
        symbols[left].rank = r->s->ranks[id];
        symbols[left].joined = (uint32_t)id;
    }
}

/* Append an id for each byte of `text`: its byte token, else the token with this byte as its text,
 * else unk. Without any of these the byte is dropped. */
static bool emit_bytes(const struct spm_rules *r, struct bn_str text, struct token_list *out,
                       struct bn_error *err)
{
    for (size_t i = 0; i < text.n_bytes; i++) {
        const struct bn_str raw = {text.ptr + i, 1};
        int32_t id = r->v->byte_ids[(uint8_t)text.ptr[i]];
        if (id < 0)
            id = vocab_find(r->v, raw, VOCAB_WORD);
        if (id < 0)
            id = r->s->unk;
        if (id >= 0 && !token_list_push(out, id, err))
            return false;
    }
    return true;
}

bool spm_encode(const struct spm *s, const struct vocab *v, struct bn_str piece, struct merge *m,
                struct token_list *out, struct bn_error *err)
{
    if (!merge_reserve(m, piece.n_bytes, err))
        return false;
    const struct spm_rules rules = {s, v, piece};
    const uint32_t n_bytes = (uint32_t)piece.n_bytes;
    uint32_t before = UINT32_MAX;
    for (uint32_t at = 0; at < n_bytes;) {
        const size_t n = utf8_decode(piece.ptr + at, n_bytes - at, NULL);
        const uint32_t next = at + (n ? (uint32_t)n : 1);
        const int32_t id = vocab_find(v, (struct bn_str){piece.ptr + at, next - at}, VOCAB_WORD);
        m->symbols[at] = (struct merge_symbol){
            .id = id >= 0 ? (uint32_t)id : NO_TOKEN,
            .next = next,
            .before = before,
        };
        before = at;
        at = next;
    }
    merge_run(m, n_bytes, spm_pair_of, &rules);
    for (uint32_t at = 0; at < n_bytes; at = m->symbols[at].next) {
        const struct merge_symbol *symbol = &m->symbols[at];
        const struct bn_str text = {piece.ptr + at, symbol->next - at};
        const bool ok = symbol->id != NO_TOKEN ? token_list_push(out, (int32_t)symbol->id, err)
                                               : emit_bytes(&rules, text, out, err);
        if (!ok)
            return false;
    }
    return true;
}
