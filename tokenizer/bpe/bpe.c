/*
 * Encodes pieces with byte-level BPE. Merges are found by the symbols of their two halves; texts
 * are compared only while the table is built (bpe_build.c).
 */
#include "tokenizer/bpe/bpe.h"

static void bpe_pair_of(const void *rules, struct merge_symbol *symbols, uint32_t left,
                        uint32_t right)
{
    const struct bpe_pair *pair = bpe_find_pair(rules, symbols[left].id, symbols[right].id);
    const bool found = pair && pair->rank1 > 0;
    symbols[left].rank = found ? pair->rank1 - 1 : MERGE_NO_RANK;
    symbols[left].joined = found ? pair->joined : 0;
}

/* Append a symbol. One that is not a token is written as its bytes; bytes that are not tokens are
 * dropped. */
static bool emit(const struct bpe *b, const struct vocab *v, uint32_t symbol, struct bn_str text,
                 struct token_list *out, struct bn_error *err)
{
    if (symbol < v->n)
        return token_list_push(out, (int32_t)symbol, err);
    for (size_t i = 0; i < text.n_bytes; i++) {
        const uint32_t byte = b->bytes[(uint8_t)text.ptr[i]];
        if (byte < v->n && !token_list_push(out, (int32_t)byte, err))
            return false;
    }
    return true;
}

bool bpe_encode(const struct bpe *b, const struct vocab *v, struct bn_str piece, struct merge *m,
                struct token_list *out, struct bn_error *err)
{
    if (b->whole_first && piece.n_bytes <= v->longest_word) {
        const int32_t id = vocab_find(v, piece, VOCAB_WORD);
        if (id >= 0)
            return token_list_push(out, id, err);
    }
    if (!merge_reserve(m, piece.n_bytes, err))
        return false;
    const uint32_t n_bytes = (uint32_t)piece.n_bytes;
    for (uint32_t i = 0; i < n_bytes; i++) {
        m->symbols[i] = (struct merge_symbol){
            .id = b->bytes[(uint8_t)piece.ptr[i]],
            .next = i + 1,
            .before = i ? i - 1 : UINT32_MAX,
        };
    }
    merge_run(m, n_bytes, bpe_pair_of, b);
    for (uint32_t i = 0; i < n_bytes; i = m->symbols[i].next) {
        const struct bn_str text = {piece.ptr + i, m->symbols[i].next - i};
        if (!emit(b, v, m->symbols[i].id, text, out, err))
            return false;
    }
    return true;
}
