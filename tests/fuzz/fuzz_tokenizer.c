/*
 * A hostile vocabulary, then a hostile text through it.
 *
 * First byte even: a u16 length, that many bytes of text, and a whole GGUF file. Odd: the
 * vocabulary is built from the bytes, so that the fuzzer need not learn GGUF first: flags, then
 * strings with a length byte (tokens with a type and a score, merges), then the text.
 *
 * Beside crashes, it checks what must hold for every vocabulary: ids in range, no control token out
 * of somebody's words, the same text whether streamed or whole.
 */
#include "engine/base/memory.h"
#include "engine/file.h"
#include "tests/fuzz/fuzz.h"
#include "tests/tokenizer/vocab_builder.h"

#include <stdlib.h>
#include <string.h>

#define KEY "tokenizer.ggml."
#define TOKENS_MAX 300
#define MERGES_MAX 200

struct input {
    const uint8_t *at;
    size_t n_left;
};

static uint8_t take_byte(struct input *in)
{
    if (in->n_left == 0)
        return 0;
    in->n_left--;
    return *in->at++;
}

static struct bn_str take_str(struct input *in, size_t n_bytes)
{
    const size_t n = n_bytes < in->n_left ? n_bytes : in->n_left;
    const struct bn_str str = {(const char *)in->at, n};
    in->at += n;
    in->n_left -= n;
    return str;
}

static void hold(bool true_for_all)
{
    if (!true_for_all)
        abort();
}

static void build(struct vocab_builder *b, struct input *in)
{
    static const char *const pres[] = {"llama-bpe", "default", "gpt-2",  "falcon",
                                       "qwen2",     "smollm",  "no such"};
    static struct bn_str tokens[TOKENS_MAX + 256], merges[MERGES_MAX];
    static int32_t types[TOKENS_MAX + 256];
    static float scores[TOKENS_MAX + 256];
    static char bytes[256][4];
    const uint8_t flags = take_byte(in);
    const uint8_t pre = take_byte(in);
    const size_t n_tokens = take_byte(in), n_merges = take_byte(in) % MERGES_MAX;
    size_t n = 0;
    for (; flags & 2 && n < 256; n++) {
        tokens[n] = (struct bn_str){bytes[n], made_byte_char((uint8_t)n, bytes[n])};
        types[n] = TOKEN_NORMAL;
        scores[n] = -50;
    }
    for (size_t i = 0; i < n_tokens; i++, n++) {
        const uint8_t kind = take_byte(in);
        types[n] = kind % 8;
        scores[n] = (float)(kind / 8) - 16;
        tokens[n] = take_str(in, take_byte(in) % 32);
    }
    for (size_t i = 0; i < n_merges; i++)
        merges[i] = take_str(in, take_byte(in) % 32);
    vocab_builder_str(b, KEY "model", bn_str_of(flags & 1 ? "gpt2" : "llama"));
    if (pre % 8 < 7)
        vocab_builder_str(b, KEY "pre", bn_str_of(pres[pre % 8]));
    vocab_builder_strs(b, KEY "tokens", tokens, n);
    vocab_builder_i32s(b, KEY "token_type", types, n);
    vocab_builder_f32s(b, KEY "scores", scores, n);
    vocab_builder_strs(b, KEY "merges", merges, n_merges);
    for (size_t i = 0; i < N_MARKS; i++) {
        if (flags & 4)
            vocab_builder_u32(b, vocab_mark_keys[i], take_byte(in));
    }
    if (flags & 8)
        vocab_builder_bool(b, KEY "add_bos_token", flags & 16);
    if (flags & 32)
        vocab_builder_bool(b, KEY "add_space_prefix", flags & 64);
    vocab_builder_end(b);
}

/* Somebody's words: ids in range, nothing that ends or begins a turn; all bytes come back where the
 * vocabulary has them all. */
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
        hold(ids.ids[i] >= 0 && (size_t)ids.ids[i] < info->n_vocab);
        hold(!tokenizer_is_control(t, ids.ids[i]) || ids.ids[i] == info->unk);
    }
    size_t n_back;
    char *back = made_decode(t, &ids, &n_back);
    if (has_all_bytes)
        hold(n_back == text.n_bytes && (n_back == 0 || memcmp(back, text.ptr, n_back) == 0));
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
    hold(tokenizer_encode(t, segments, 5, TOKENIZER_BOS_AUTO, &ids, &err));
    const char *const stops[] = {"a", "</", "\n\n"};
    const struct detok_config cfg = {
        .stops = stops, .n_stops = 3, .special = TOKENIZER_SPECIAL_SHOW};
    struct detok *d;
    hold(detok_open(t, &cfg, &d, &err));
    bool stopped = false;
    for (size_t i = 0; i < ids.n; i++) {
        struct bn_str part;
        hold(detok_push(d, ids.ids[i], &part, &stopped, &err));
        const struct bn_str token = tokenizer_token_text(t, ids.ids[i]);
        hold(token.n_bytes == 0 || tokenizer_find(t, token) >= 0);
    }
    (void)detok_flush(d); /* its text is checked with the message */
    detok_close(d);
    token_list_finish(&ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    struct input in = {bytes, n_bytes};
    struct vocab_builder b = {0};
    struct bn_error err;
    struct bn_file *file = NULL;
    struct tokenizer *t = NULL;
    struct bn_notes notes = {0};
    const struct tokenizer_config cfg = {.notes = &notes};
    struct bn_str text;
    bool opened;
    if (take_byte(&in) % 2 == 0) {
        const size_t low = take_byte(&in), high = take_byte(&in);
        text = take_str(&in, low | high << 8);
        opened = bn_file_open_memory(in.at, in.n_left, &file, &err);
    } else {
        build(&b, &in);
        text = take_str(&in, in.n_left);
        opened = bn_file_open_memory(b.bytes, b.n, &file, &err);
    }
    if (opened && tokenizer_open(file, &cfg, &t, &err)) {
        check_message(t, text);
        check_prompt(t, text);
    }
    tokenizer_close(t);
    bn_file_close(file);
    vocab_builder_finish(&b);
    return 0;
}
