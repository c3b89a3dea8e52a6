/*
 * Writes GGUF version 3, little-endian, without tensors.
 */
#include "tests/tokenizer/vocab_builder.h"

#include "engine/base/memory.h"
#include "engine/base/utf8.h"
#include "engine/file.h"
#include "tokenizer/tokenizer_state.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { TYPE_U32 = 4, TYPE_I32 = 5, TYPE_F32 = 6, TYPE_BOOL = 7, TYPE_STR = 8, TYPE_ARRAY = 9 };

#define KEY "tokenizer.ggml."
#define HEADER_BYTES 24
#define KEY_COUNT_AT 16

static void put(struct vocab_builder *b, const void *bytes, size_t n)
{
    const bool grown = mem_grow(&b->bytes, &b->cap, b->n + n, 1);
    assert(grown);
    (void)grown;
    if (n > 0)
        memcpy(b->bytes + b->n, bytes, n);
    b->n += n;
}

static void put_number(struct vocab_builder *b, uint64_t value, size_t n_bytes)
{
    uint8_t bytes[8];
    for (size_t i = 0; i < n_bytes; i++)
        bytes[i] = (uint8_t)(value >> (8 * i));
    put(b, bytes, n_bytes);
}

static void put_str(struct vocab_builder *b, struct bn_str text)
{
    put_number(b, text.n_bytes, 8);
    put(b, text.ptr, text.n_bytes);
}

static void put_key(struct vocab_builder *b, const char *key, unsigned type)
{
    if (b->n == 0) {
        put(b, "GGUF", 4);
        put_number(b, 3, 4);
        put_number(b, 0, 8);
        put_number(b, 0, 8); /* number of keys, set by vocab_builder_end */
    }
    put_str(b, bn_str_of(key));
    put_number(b, type, 4);
    b->n_keys++;
}

static void put_array(struct vocab_builder *b, const char *key, unsigned type, size_t n)
{
    put_key(b, key, TYPE_ARRAY);
    put_number(b, type, 4);
    put_number(b, n, 8);
}

void vocab_builder_str(struct vocab_builder *b, const char *key, struct bn_str value)
{
    put_key(b, key, TYPE_STR);
    put_str(b, value);
}

void vocab_builder_u32(struct vocab_builder *b, const char *key, uint32_t value)
{
    put_key(b, key, TYPE_U32);
    put_number(b, value, 4);
}

void vocab_builder_bool(struct vocab_builder *b, const char *key, bool value)
{
    put_key(b, key, TYPE_BOOL);
    put_number(b, value, 1);
}

void vocab_builder_strs(struct vocab_builder *b, const char *key, const struct bn_str *v, size_t n)
{
    put_array(b, key, TYPE_STR, n);
    for (size_t i = 0; i < n; i++)
        put_str(b, v[i]);
}

void vocab_builder_f32s(struct vocab_builder *b, const char *key, const float *v, size_t n)
{
    put_array(b, key, TYPE_F32, n);
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &v[i], sizeof(bits));
        put_number(b, bits, 4);
    }
}

void vocab_builder_i32s(struct vocab_builder *b, const char *key, const int32_t *v, size_t n)
{
    put_array(b, key, TYPE_I32, n);
    for (size_t i = 0; i < n; i++)
        put_number(b, (uint32_t)v[i], 4);
}

void vocab_builder_end(struct vocab_builder *b)
{
    assert(b->n >= HEADER_BYTES);
    for (size_t i = 0; i < 8; i++)
        b->bytes[KEY_COUNT_AT + i] = (uint8_t)(b->n_keys >> (8 * i));
}

void vocab_builder_finish(struct vocab_builder *b)
{
    mem_free(b->bytes);
    *b = (struct vocab_builder){0};
}

size_t made_byte_char(uint8_t byte, char out[4])
{
    uint32_t other = 256;
    for (unsigned i = 0; i < 256; i++) {
        const bool is_same = (i >= 33 && i <= 126) || (i >= 161 && i <= 172) || i >= 174;
        if (i == byte)
            return utf8_encode(is_same ? i : other, out);
        other += !is_same;
    }
    return 0;
}

/* The arrays of a test vocabulary, common tokens first. */
struct arrays {
    struct bn_str *texts;
    float *scores;
    int32_t *types;
    size_t n;
    char byte_texts[256 * 8];
};

static void add(struct arrays *a, struct bn_str text, int32_t type, float score)
{
    a->texts[a->n] = text;
    a->types[a->n] = type;
    a->scores[a->n++] = score;
}

static void add_common(struct arrays *a, const struct made_vocab *v)
{
    const bool byte_level = strcmp(v->model, "gpt2") == 0;
    if (!byte_level) {
        add(a, bn_str_of("<unk>"), TOKEN_UNKNOWN, 0);
        add(a, bn_str_of("<s>"), TOKEN_CONTROL, 0);
        add(a, bn_str_of("</s>"), TOKEN_CONTROL, 0);
    }
    for (unsigned i = 0; i < 256; i++) {
        char *text = a->byte_texts + i * 8;
        if (byte_level) {
            const size_t n = made_byte_char((uint8_t)i, text);
            add(a, (struct bn_str){text, n}, TOKEN_NORMAL, 0);
        } else {
            (void)snprintf(text, 8, "<0x%02X>", i); /* six characters */
            add(a, bn_str_of(text), TOKEN_BYTE, 0);
        }
    }
    for (size_t i = 0; i < v->n_tokens; i++)
        add(a, bn_str_of(v->tokens[i].text), v->tokens[i].type, v->tokens[i].score);
}

static void write_scalars(struct vocab_builder *b, const struct made_vocab *v,
                          const struct arrays *a)
{
    vocab_builder_str(b, "general.architecture", bn_str_of(v->arch ? v->arch : "test"));
    vocab_builder_str(b, KEY "model", bn_str_of(v->model));
    if (v->pre)
        vocab_builder_str(b, KEY "pre", bn_str_of(v->pre));
    for (size_t mark = 0; mark < N_MARKS; mark++) {
        for (size_t i = a->n; v->marks[mark] && i-- > 0;) {
            if (!bn_str_is(a->texts[i], v->marks[mark]))
                continue;
            vocab_builder_u32(b, vocab_mark_keys[mark], (uint32_t)i);
            break;
        }
    }
    if (v->add_bos != SWITCH_UNSET)
        vocab_builder_bool(b, KEY "add_bos_token", v->add_bos == SWITCH_ON);
    if (v->add_space_prefix != SWITCH_UNSET)
        vocab_builder_bool(b, KEY "add_space_prefix", v->add_space_prefix == SWITCH_ON);
}

static void write_all(struct vocab_builder *b, const struct made_vocab *v, struct arrays *a)
{
    add_common(a, v);
    write_scalars(b, v, a);
    vocab_builder_strs(b, KEY "tokens", a->texts, a->n);
    vocab_builder_f32s(b, KEY "scores", a->scores, a->n);
    vocab_builder_i32s(b, KEY "token_type", a->types, a->n);
    if (strcmp(v->model, "gpt2") == 0) {
        struct bn_str *merges = mem_alloc(v->n_merges, sizeof(*merges));
        assert(merges);
        for (size_t i = 0; i < v->n_merges; i++)
            merges[i] = bn_str_of(v->merges[i]);
        vocab_builder_strs(b, KEY "merges", merges, v->n_merges);
        mem_free(merges);
    }
    vocab_builder_end(b);
}

struct tokenizer *made_open(const struct made_vocab *v, const struct tokenizer_config *cfg,
                            struct bn_error *err)
{
    const struct tokenizer_config none = {0};
    const size_t n = v->n_tokens + MADE_FIRST_LLAMA;
    struct arrays a = {
        .texts = mem_alloc(n, sizeof(*a.texts)),
        .scores = mem_alloc(n, sizeof(*a.scores)),
        .types = mem_alloc(n, sizeof(*a.types)),
    };
    assert(a.texts && a.scores && a.types);
    struct vocab_builder b = {0};
    write_all(&b, v, &a);
    struct bn_file *file = NULL;
    struct tokenizer *t = NULL;
    if (bn_file_open_memory(b.bytes, b.n, &file, err) &&
        !tokenizer_open(file, cfg ? cfg : &none, &t, err))
        t = NULL;
    bn_file_close(file);
    vocab_builder_finish(&b);
    mem_free(a.texts);
    mem_free(a.scores);
    mem_free(a.types);
    return t;
}

int32_t made_find(const struct tokenizer *t, struct bn_str text)
{
    static const enum vocab_class classes[] = {VOCAB_SPECIAL, VOCAB_WORD, VOCAB_OTHER};
    for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]) && text.n_bytes > 0; i++) {
        const int32_t id = vocab_find(&t->vocab, text, classes[i]);
        if (id >= 0)
            return id;
    }
    return TOKEN_NONE;
}

struct token_list made_encode(const struct tokenizer *t, enum segment_kind kind, struct bn_str text)
{
    struct token_list ids = {0};
    struct bn_error err;
    const struct segment seg = {.kind = kind, .text = text};
    const bool ok = tokenizer_encode(t, &seg, 1, TOKENIZER_BOS_NEVER, &ids, &err);
    assert(ok);
    (void)ok;
    return ids;
}

char *made_decode(const struct tokenizer *t, const struct token_list *ids, size_t *n_bytes)
{
    const struct detok_config cfg = {.at_start = true};
    struct bn_error err;
    struct detok *d = NULL;
    char *text = NULL;
    size_t cap = 0;
    *n_bytes = 0;
    bool ok = detok_open(t, &cfg, &d, &err);
    for (size_t i = 0; ok && i <= ids->n; i++) {
        struct bn_str part;
        bool stopped = false;
        if (i == ids->n)
            part = detok_flush(d);
        else
            ok = detok_push(d, ids->ids[i], &part, &stopped, &err);
        ok = ok && mem_grow(&text, &cap, *n_bytes + part.n_bytes + 1, 1);
        if (ok && part.n_bytes > 0)
            memcpy(text + *n_bytes, part.ptr, part.n_bytes);
        *n_bytes += part.n_bytes;
    }
    assert(ok);
    detok_close(d);
    return text;
}
