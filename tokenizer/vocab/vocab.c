/*
 * Decodes the texts of a vocabulary and indexes them by class.
 *
 * Most byte-level texts are decoded with the byte map, and in most SentencePiece texts a space
 * replaces each U+2581. append_text has the exceptions.
 */
#include "tokenizer/vocab/vocab.h"

#include "engine/base/hash.h"
#include "engine/base/memory.h"
#include "engine/base/size.h"
#include "tokenizer/vocab/byte_map.h"
#include "tokenizer/vocab/token_list.h"

#include <string.h>

#define SPACE_MARK "\xE2\x96\x81" /* U+2581, the space of SentencePiece vocabularies */
#define SPACE_MARK_BYTES 3

struct builder {
    const struct vocab_source *s;
    struct vocab *v;
    struct byte_map map;
    bool byte_level;
};

uint64_t vocab_hash(const struct vocab_source *s)
{
    uint64_t h = FNV1A_START;
    for (size_t i = 0; i < s->n_tokens; i++) {
        h = fnv1a_add_bytes(h, s->tokens[i].ptr, s->tokens[i].n_bytes);
        h = fnv1a_add(h, (uint8_t)s->types[i]);
        h = fnv1a_add(h, 0xFF); /* separates tokens, since this byte occurs in no UTF-8 */
    }
    return h;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

int vocab_byte_of_text(struct bn_str text)
{
    if (text.n_bytes != 6 || memcmp(text.ptr, "<0x", 3) != 0 || text.ptr[5] != '>')
        return -1;
    const int high = hex_digit(text.ptr[3]), low = hex_digit(text.ptr[4]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

size_t vocab_decode_spaces(struct bn_str text, char *out)
{
    size_t n_out = 0;
    for (size_t at = 0; at < text.n_bytes;) {
        if (text.n_bytes - at >= SPACE_MARK_BYTES &&
            memcmp(text.ptr + at, SPACE_MARK, SPACE_MARK_BYTES) == 0) {
            out[n_out++] = ' ';
            at += SPACE_MARK_BYTES;
            continue;
        }
        out[n_out++] = text.ptr[at++];
    }
    return n_out;
}

bool vocab_split_merge(struct bn_str merge, struct bn_str *left, struct bn_str *right)
{
    const char *space = merge.n_bytes > 1 ? memchr(merge.ptr + 1, ' ', merge.n_bytes - 1) : NULL;
    const size_t left_bytes = space ? (size_t)(space - merge.ptr) : 0;
    if (!space || left_bytes + 1 == merge.n_bytes)
        return false;
    *left = (struct bn_str){merge.ptr, left_bytes};
    *right = (struct bn_str){space + 1, merge.n_bytes - left_bytes - 1};
    return true;
}

static size_t copy_text(struct bn_str text, char *out)
{
    if (text.n_bytes)
        memcpy(out, text.ptr, text.n_bytes);
    return text.n_bytes;
}

/* Append the text of token i and return its class. Control and unknown tokens are stored as in the
 * file. So are user-defined tokens of a byte-level vocabulary, because the byte map was not applied
 * to them. A text like "<0x0A>" in a SentencePiece vocabulary is also a byte token if its type is
 * normal or unused. */
static enum vocab_class append_text(struct builder *b, size_t i)
{
    const struct bn_str text = b->s->tokens[i];
    const int32_t type = b->s->types[i];
    char *out = text_index_buffer(&b->v->texts);
    const int byte = b->byte_level ? -1 : vocab_byte_of_text(text);
    bool exact = true; /* ordinary text can produce the stored text */
    size_t n = 0;
    if (type == TOKEN_BYTE && byte >= 0) {
        out[n++] = (char)byte;
        exact = false;
    } else if (type == TOKEN_CONTROL || type == TOKEN_UNKNOWN ||
               (type == TOKEN_USER && b->byte_level)) {
        n = copy_text(text, out);
    } else if (b->byte_level) {
        n = byte_map_decode(&b->map, text, out, &exact);
    } else {
        n = vocab_decode_spaces(text, out);
        /* Encoding reads a space as U+2581, so no input matches a text with a stored space. */
        exact = n == 0 || !memchr(text.ptr, ' ', text.n_bytes);
    }
    (void)text_index_append(&b->v->texts, n); /* returns i */
    if (type == TOKEN_CONTROL || type == TOKEN_UNKNOWN || type == TOKEN_USER)
        return VOCAB_SPECIAL;
    if (byte >= 0 && b->v->byte_ids[byte] < 0)
        b->v->byte_ids[byte] = (int32_t)i;
    if (!exact || n == 0)
        return VOCAB_OTHER;
    b->v->longest_word = size_max(b->v->longest_word, n);
    return VOCAB_WORD;
}

static bool append_all(struct builder *b, struct bn_error *err)
{
    for (size_t i = 0; i < b->s->n_tokens; i++) {
        b->v->types[i] = (uint8_t)b->s->types[i];
        const enum vocab_class class = append_text(b, i);
        b->v->n_special += class == VOCAB_SPECIAL;
        if (!text_index_add(&b->v->texts, (uint32_t)i, class))
            return bn_fail(err, BN_EFORMAT, "token %zu: too many token texts collide", i);
    }
    b->v->n = b->s->n_tokens;
    return true;
}

bool vocab_init(struct vocab *v, const struct vocab_source *s, struct bn_error *err)
{
    *v = (struct vocab){0};
    struct builder b = {.s = s, .v = v, .byte_level = bn_str_is(s->model, "gpt2")};
    byte_map_init(&b.map);
    for (size_t i = 0; i < 256; i++)
        v->byte_ids[i] = TOKEN_NONE;
    size_t n_bytes = 0;
    for (size_t i = 0; i < s->n_tokens; i++)
        n_bytes += s->tokens[i].n_bytes; /* cannot overflow: all are in one file */
    if (!text_index_init(&v->texts, s->n_tokens, n_bytes, err))
        return false;
    v->types = mem_alloc(s->n_tokens, 1);
    if (!v->types)
        bn_fail(err, BN_ENOMEM, "no memory for %zu token types", s->n_tokens);
    if (v->types && append_all(&b, err))
        return true;
    vocab_finish(v);
    return false;
}

void vocab_finish(struct vocab *v)
{
    text_index_finish(&v->texts);
    mem_free(v->types);
    *v = (struct vocab){0};
}

struct bn_str vocab_text(const struct vocab *v, int32_t id)
{
    return text_index_get(&v->texts, (uint32_t)id);
}

int32_t vocab_find(const struct vocab *v, struct bn_str text, enum vocab_class class)
{
    const uint32_t number = text_index_find(&v->texts, text, class);
    return number == UINT32_MAX ? TOKEN_NONE : (int32_t)number;
}
