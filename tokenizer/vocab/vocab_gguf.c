/*
 * Reads the tokenizer keys of a model file. No other file of the tokenizer reads from it.
 *
 * bn_file has checked that every array fits into the file, so the memory allocated here is at most
 * a small multiple of the file size.
 */
#include "tokenizer/vocab/vocab_source.h"

#include "engine/base/memory.h"
#include "engine/file.h"

#define KEY "tokenizer.ggml."

const char *const vocab_mark_keys[N_MARKS] = {
    [MARK_BOS] = KEY "bos_token_id",     [MARK_EOS] = KEY "eos_token_id",
    [MARK_EOT] = KEY "eot_token_id",     [MARK_EOM] = KEY "eom_token_id",
    [MARK_UNK] = KEY "unknown_token_id", [MARK_PAD] = KEY "padding_token_id",
};

static bool read_strs(struct bn_str **out, size_t *n_out, const struct bn_file *file,
                      const char *key, struct bn_error *err)
{
    struct bn_str_walk walk;
    size_t n = 0;
    if (!bn_file_walk_strs(file, key, &walk, &n))
        return bn_fail(err, BN_EFORMAT, "key '%s' is missing or is not an array of strings", key);
    struct bn_str *strs = mem_alloc(n, sizeof(*strs));
    if (!strs)
        return bn_fail(err, BN_ENOMEM, "no memory for the %zu strings of '%s'", n, key);
    size_t n_read = 0; /* becomes n: bn_file has checked all strings */
    while (n_read < n && bn_str_walk_next(&walk, &strs[n_read]))
        n_read++;
    *out = strs;
    *n_out = n_read;
    return true;
}

/* An array with one element per token must have as many elements as there are tokens. */
static bool check_length(const struct vocab_source *s, const struct bn_file *file, const char *key,
                         struct bn_error *err)
{
    size_t n = 0;
    if (!bn_file_get_array(file, key, &n))
        return bn_fail(err, BN_EFORMAT, "key '%s' is not an array", key);
    if (n != s->n_tokens)
        return bn_fail(err, BN_EFORMAT, "key '%s' has %zu elements for %zu tokens", key, n,
                       s->n_tokens);
    return true;
}

static bool read_types(struct vocab_source *s, const struct bn_file *file, struct bn_error *err)
{
    const char *key = KEY "token_type";
    s->types = mem_alloc(s->n_tokens, sizeof(*s->types));
    if (!s->types)
        return bn_fail(err, BN_ENOMEM, "no memory for %zu token types", s->n_tokens);
    s->has_types = bn_file_has(file, key);
    if (s->has_types) {
        if (!check_length(s, file, key, err))
            return false;
        if (!bn_file_array_i32(file, key, s->types, s->n_tokens))
            return bn_fail(err, BN_EFORMAT, "key '%s' is not an array of 32-bit integers", key);
    }
    /* Unknown numbers become TOKEN_NORMAL. Without the key all are 0, from mem_alloc. */
    for (size_t i = 0; i < s->n_tokens; i++) {
        if (s->types[i] < TOKEN_NORMAL || s->types[i] > TOKEN_BYTE)
            s->types[i] = TOKEN_NORMAL;
    }
    return true;
}

static bool read_scores(struct vocab_source *s, const struct bn_file *file, struct bn_error *err)
{
    const char *key = KEY "scores";
    if (!bn_file_has(file, key))
        return true;
    if (!check_length(s, file, key, err))
        return false;
    s->scores = mem_alloc(s->n_tokens, sizeof(*s->scores));
    if (!s->scores)
        return bn_fail(err, BN_ENOMEM, "no memory for %zu token scores", s->n_tokens);
    if (!bn_file_array_f32(file, key, s->scores, s->n_tokens))
        return bn_fail(err, BN_EFORMAT, "key '%s' is not an array of 32-bit floats", key);
    return true;
}

static enum vocab_switch read_switch(const struct bn_file *file, const char *key)
{
    bool on;
    if (!bn_file_get_bool(file, key, &on))
        return SWITCH_UNSET;
    return on ? SWITCH_ON : SWITCH_OFF;
}

static void read_scalars(struct vocab_source *s, const struct bn_file *file)
{
    struct bn_str str;
    if (bn_file_get_str(file, "general.architecture", &str))
        s->architecture = str;
    if (bn_file_get_str(file, KEY "pre", &str))
        s->pre = str; /* ptr is not NULL: it points into the file */
    for (size_t i = 0; i < N_MARKS; i++) {
        s->has_mark[i] = bn_file_has(file, vocab_mark_keys[i]);
        if (!bn_file_get_u64(file, vocab_mark_keys[i], &s->marks[i]))
            s->marks[i] = UINT64_MAX;
    }
    s->add_bos = read_switch(file, KEY "add_bos_token");
    s->add_space_prefix = read_switch(file, KEY "add_space_prefix");
}

/* With empty tokens every text has no ids, so each prompt would be called empty. */
static bool check_texts(const struct vocab_source *s, struct bn_error *err)
{
    for (size_t i = 0; i < s->n_tokens; i++)
        if (s->tokens[i].n_bytes > 0)
            return true;
    return bn_fail(err, BN_EFORMAT, "all %zu tokens of '" KEY "tokens' are empty", s->n_tokens);
}

static bool read_all(struct vocab_source *s, const struct bn_file *file, struct bn_error *err)
{
    if (!bn_file_get_str(file, KEY "model", &s->model))
        return bn_fail(err, BN_EFORMAT, "the file has no vocabulary (key '" KEY "model')");
    if (!bn_str_is(s->model, "gpt2") && !bn_str_is(s->model, "llama"))
        return bn_fail(err, BN_EUNSUPPORTED,
                       "tokenizer model '%.*s' is not supported (only gpt2 and llama are)",
                       bn_str_shown(s->model, 40), s->model.ptr);
    if (!read_strs(&s->tokens, &s->n_tokens, file, KEY "tokens", err))
        return false;
    if (s->n_tokens == 0 || s->n_tokens > INT32_MAX)
        return bn_fail(err, BN_EFORMAT, "a vocabulary cannot have %zu tokens", s->n_tokens);
    if (!check_texts(s, err) || !read_types(s, file, err) || !read_scores(s, file, err))
        return false;
    if (bn_str_is(s->model, "gpt2") &&
        !read_strs(&s->merges, &s->n_merges, file, KEY "merges", err))
        return false;
    if (bn_str_is(s->model, "llama") && !s->scores)
        return bn_fail(err, BN_EFORMAT, "key '" KEY "scores' is missing");
    read_scalars(s, file);
    return true;
}

bool vocab_source_init(struct vocab_source *s, const struct bn_file *file, struct bn_error *err)
{
    *s = (struct vocab_source){0};
    if (read_all(s, file, err))
        return true;
    vocab_source_finish(s);
    return false;
}

void vocab_source_finish(struct vocab_source *s)
{
    mem_free(s->tokens);
    mem_free(s->types);
    mem_free(s->scores);
    mem_free(s->merges);
    *s = (struct vocab_source){0};
}
