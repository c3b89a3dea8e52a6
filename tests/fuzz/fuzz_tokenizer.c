/*
 * Fuzzes the tokenizer with a hostile vocabulary and a hostile text.
 *
 * If the first byte is even, a u16 length, a text of that length and a complete GGUF file follow.
 * If it is odd, the vocabulary is built from the bytes, so that the fuzzer does not have to learn
 * GGUF: flags, then strings with a length byte (tokens with a type and a score, merges), then the
 * text.
 *
 * It also checks properties of every vocabulary: ids are in range, message text gives no control
 * token, and the text survives the round trip if all bytes have tokens, up to Unicode normalisation
 * in the families that normalise.
 */
#include "engine/base/memory.h"
#include "engine/file.h"
#include "tests/fuzz/fuzz.h"
#include "tests/tokenizer/vocab_builder.h"
#include "tokenizer/bpe/nfc.h"

#include <stdlib.h>
#include <string.h>

#define KEY "tokenizer.ggml."
#define TOKENS_MAX 300
#define MERGES_MAX 200

struct input {
    const uint8_t *at;
    size_t n_left;
};

static uint8_t next_byte(struct input *in)
{
    if (in->n_left == 0)
        return 0;
    in->n_left--;
    return *in->at++;
}

static struct bn_str next_str(struct input *in, size_t n_bytes)
{
    const size_t n = n_bytes < in->n_left ? n_bytes : in->n_left;
    const struct bn_str str = {(const char *)in->at, n};
    in->at += n;
    in->n_left -= n;
    return str;
}

static void check(bool is_true)
{
    if (!is_true)
        abort();
}

static void build(struct gguf_writer *w, struct input *in)
{
    static const char *const pres[] = {"llama-bpe", "default", "gpt-2",   "falcon",
                                       "qwen2",     "smollm",  "no such", "qwen35"};
    static struct bn_str tokens[TOKENS_MAX + 256], merges[MERGES_MAX];
    static int32_t types[TOKENS_MAX + 256];
    static float scores[TOKENS_MAX + 256];
    static char bytes[256][4];
    const uint8_t flags = next_byte(in);
    const uint8_t pre = next_byte(in);
    const size_t n_tokens = next_byte(in), n_merges = next_byte(in) % MERGES_MAX;
    size_t n = 0;
    for (; flags & 2 && n < 256; n++) {
        tokens[n] = (struct bn_str){bytes[n], made_byte_char((uint8_t)n, bytes[n])};
        types[n] = TOKEN_NORMAL;
        scores[n] = -50;
    }
    for (size_t i = 0; i < n_tokens; i++, n++) {
        const uint8_t kind = next_byte(in);
        types[n] = kind % 8;
        scores[n] = (float)(kind / 8) - 16;
        tokens[n] = next_str(in, next_byte(in) % 32);
    }
    for (size_t i = 0; i < n_merges; i++)
        merges[i] = next_str(in, next_byte(in) % 32);
    gguf_put_str(w, KEY "model", bn_str_of(flags & 1 ? "gpt2" : "llama"));
    if (pre % 9 < 8)
        gguf_put_str(w, KEY "pre", bn_str_of(pres[pre % 9]));
    gguf_put_strs(w, KEY "tokens", tokens, n);
    gguf_put_array(w, KEY "token_type", GGUF_I32, types, n);
    gguf_put_array(w, KEY "scores", GGUF_F32, scores, n);
    gguf_put_strs(w, KEY "merges", merges, n_merges);
    for (size_t i = 0; i < N_MARKS; i++) {
        if (flags & 4)
            gguf_put_u32(w, vocab_mark_keys[i], next_byte(in));
    }
    if (flags & 8)
        gguf_put_bool(w, KEY "add_bos_token", flags & 16);
    if (flags & 32)
        gguf_put_bool(w, KEY "add_space_prefix", flags & 64);
}

static struct bn_str normalised(struct bn_str text, char **buffer)
{
    struct bn_str out = {0};
    struct bn_error err;
    *buffer = mem_alloc(text.n_bytes, NFC_GROWTH);
    out.ptr = *buffer;
    check(*buffer && nfc_write(text, *buffer, &out.n_bytes, &err));
    return out;
}

/* The families that normalise may change the bytes, but not their normal form. */
static bool same_text(const struct tokenizer_info *info, struct bn_str a, struct bn_str b)
{
    if (strcmp(info->pre, "qwen2") != 0 && strcmp(info->pre, "qwen35") != 0)
        return bn_str_equal(a, b);
    char *buffers[2];
    const bool same = bn_str_equal(normalised(a, &buffers[0]), normalised(b, &buffers[1]));
    mem_free(buffers[0]);
    mem_free(buffers[1]);
    return same;
}

/* Encode as a message: ids are in range, no id begins or ends a turn, and the text survives the
 * round trip if the vocabulary has tokens for all bytes. */
static void check_message(const struct tokenizer *t, struct bn_str text)
{
    const struct tokenizer_info *info = tokenizer_info(t);
    struct token_list ids = made_encode(t, SEGMENT_MESSAGE, text);
    bool has_all_bytes = strcmp(info->model, "gpt2") == 0;
    for (unsigned i = 0; i < 256 && has_all_bytes; i++) {
        const char byte = (char)i;
        const struct token_list one = made_encode(t, SEGMENT_MESSAGE, (struct bn_str){&byte, 1});
        has_all_bytes = one.n == 1;
        struct token_list used = one;
        token_list_finish(&used);
    }
    for (size_t i = 0; i < ids.n; i++) {
        check(ids.ids[i] >= 0 && (size_t)ids.ids[i] < info->n_vocab);
        check(!tokenizer_is_control(t, ids.ids[i]) || ids.ids[i] == info->unk);
    }
    size_t n_back;
    char *back = made_decode(t, &ids, &n_back);
    if (has_all_bytes)
        check(same_text(info, text, (struct bn_str){back, n_back}));
    mem_free(back);
    token_list_finish(&ids);
}

static void check_prompt(const struct tokenizer *t, struct bn_str text)
{
    struct bn_error err;
    struct token_list ids = {0};
    const size_t third = text.n_bytes / 3;
    const int32_t id = 0;
    const struct segment segments[] = {
        {.kind = SEGMENT_TEMPLATE, .text = {text.ptr, third}},
        {.kind = SEGMENT_MESSAGE, .text = {text.ptr + third, third}},
        {.kind = SEGMENT_IDS, .ids = &id, .n_ids = 1},
        {.kind = SEGMENT_TEMPLATE, .text = {text.ptr + 2 * third, text.n_bytes - 2 * third}},
        {.kind = SEGMENT_ANSWER, .text = {text.ptr, third}},
    };
    check(tokenizer_encode(t, segments, 5, TOKENIZER_BOS_AUTO, &ids, &err));
    const char *const stops[] = {"a", "</", "\n\n"};
    const struct detok_config cfg = {
        .stops = stops, .n_stops = 3, .special = TOKENIZER_SPECIAL_SHOW};
    struct detok *d;
    check(detok_open(t, &cfg, &d, &err));
    bool stopped = false;
    for (size_t i = 0; i < ids.n; i++) {
        struct bn_str part;
        check(detok_push(d, ids.ids[i], &part, &stopped, &err));
        const struct bn_str token = tokenizer_token_text(t, ids.ids[i]);
        check(token.n_bytes == 0 || made_find(t, token) >= 0);
    }
    (void)detok_flush(d); /* check_message compares the text */
    detok_close(d);
    token_list_finish(&ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    struct input in = {bytes, n_bytes};
    struct gguf_buffer made = {0};
    struct bn_error err;
    struct bn_file *file = NULL;
    struct tokenizer *t = NULL;
    struct bn_notes notes = {0};
    const struct tokenizer_config cfg = {.notes = &notes};
    struct bn_str text;
    bool opened;
    if (next_byte(&in) % 2 == 0) {
        const size_t low = next_byte(&in), high = next_byte(&in);
        text = next_str(&in, low | high << 8);
        opened = bn_file_open_memory(in.at, in.n_left, &file, &err);
    } else {
        struct gguf_writer *keys = made_keys();
        build(keys, &in);
        text = next_str(&in, in.n_left);
        opened = made_file_open(keys, &made, &file, &err);
    }
    if (opened && tokenizer_open(file, &cfg, &t, &err)) {
        check_message(t, text);
        check_prompt(t, text);
    }
    tokenizer_close(t);
    bn_file_close(file);
    mem_free(made.bytes);
    return 0;
}
