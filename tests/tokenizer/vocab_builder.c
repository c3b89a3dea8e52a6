/*
 * The arrays and keys of a vocabulary. gguf_write.h writes them.
 */
#include "tests/tokenizer/vocab_builder.h"

#include "engine/base/memory.h"
#include "engine/base/utf8.h"
#include "engine/file.h"
#include "tokenizer/tokenizer_state.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define KEY "tokenizer.ggml."

struct gguf_writer *made_keys(void)
{
    struct gguf_writer *w = NULL;
    struct bn_error err;
    const bool opened = gguf_writer_open(&w, &err);
    assert(opened);
    (void)opened;
    return w;
}

bool made_file_open(struct gguf_writer *keys, struct gguf_buffer *bytes, struct bn_file **out,
                    struct bn_error *err)
{
    const struct gguf_sink sink = gguf_sink_memory(bytes);
    const bool written = gguf_write_header(keys, &sink, err);
    assert(written);
    (void)written;
    gguf_writer_close(keys);
    return bn_file_open_memory(bytes->bytes, bytes->n_bytes, out, err);
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

static void write_scalars(struct gguf_writer *w, const struct made_vocab *v, const struct arrays *a)
{
    gguf_put_str(w, "general.architecture", bn_str_of(v->arch ? v->arch : "test"));
    gguf_put_str(w, KEY "model", bn_str_of(v->model));
    if (v->pre)
        gguf_put_str(w, KEY "pre", bn_str_of(v->pre));
    for (size_t mark = 0; mark < N_MARKS; mark++) {
        for (size_t i = a->n; v->marks[mark] && i-- > 0;) {
            if (!bn_str_is(a->texts[i], v->marks[mark]))
                continue;
            gguf_put_u32(w, vocab_mark_keys[mark], (uint32_t)i);
            break;
        }
    }
    if (v->add_bos != SWITCH_UNSET)
        gguf_put_bool(w, KEY "add_bos_token", v->add_bos == SWITCH_ON);
    if (v->add_space_prefix != SWITCH_UNSET)
        gguf_put_bool(w, KEY "add_space_prefix", v->add_space_prefix == SWITCH_ON);
}

static void write_all(struct gguf_writer *w, const struct made_vocab *v, struct arrays *a)
{
    add_common(a, v);
    write_scalars(w, v, a);
    gguf_put_strs(w, KEY "tokens", a->texts, a->n);
    gguf_put_array(w, KEY "scores", GGUF_F32, a->scores, a->n);
    if (!v->no_types)
        gguf_put_array(w, KEY "token_type", GGUF_I32, a->types, a->n);
    if (strcmp(v->model, "gpt2") == 0) {
        struct bn_str *merges = mem_alloc(v->n_merges, sizeof(*merges));
        assert(merges);
        for (size_t i = 0; i < v->n_merges; i++)
            merges[i] = bn_str_of(v->merges[i]);
        gguf_put_strs(w, KEY "merges", merges, v->n_merges);
        mem_free(merges);
    }
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
    struct gguf_writer *keys = made_keys();
    struct gguf_buffer bytes = {0};
    write_all(keys, v, &a);
    struct bn_file *file = NULL;
    struct tokenizer *t = NULL;
    if (made_file_open(keys, &bytes, &file, err) &&
        !tokenizer_open(file, cfg ? cfg : &none, &t, err))
        t = NULL;
    bn_file_close(file);
    mem_free(bytes.bytes);
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
