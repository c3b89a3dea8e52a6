/*
 * Opens a tokenizer: reads the vocabulary, repairs known faults and builds the tables.
 *
 * This file also has the functions for single ids. Encoding is in encode.c, the streaming
 * detokeniser in detok.c.
 */
#include "tokenizer/tokenizer.h"

#include "engine/base/memory.h"
#include "tokenizer/tokenizer_state.h"

#include <string.h>

#define LLAMA3_VOCAB 128256 /* number of tokens of Llama 3 */
#define LLAMA3_BOS 128000   /* id of its <|begin_of_text|> */

/* The pre-tokenizer of a file that does not name one, by its architecture or by the vocabulary of
 * Llama 3; NULL: unknown. */
static const char *implied_pre(const struct vocab_source *s)
{
    static const struct {
        const char *architecture, *pre;
    } rows[] = {{"bitnet-b1.58", "llama-bpe"}, {"bitnet-25", "llama-bpe"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (bn_str_is(s->architecture, rows[i].architecture))
            return rows[i].pre;
    }
    return s->n_tokens == LLAMA3_VOCAB && bn_str_is(s->tokens[LLAMA3_BOS], "<|begin_of_text|>")
               ? "llama-bpe"
               : NULL;
}

/* Name of the pre-tokenizer: from the caller, from the file, or implied. */
static struct bn_str pre_name(const struct vocab_source *s, const struct tokenizer_config *cfg)
{
    if (cfg->pre)
        return bn_str_of(cfg->pre);
    if (s->pre.ptr)
        return s->pre;
    const char *const implied = implied_pre(s);
    if (implied && bn_repair_allowed(cfg->no_repair, "pre-tokenizer")) {
        bn_notes_add(cfg->notes, BN_NOTE_REPAIR, "pre-tokenizer",
                     "the file names no pre-tokenizer; its vocabulary requires %s", implied);
        return bn_str_of(implied);
    }
    bn_notes_add(cfg->notes, BN_NOTE_WARNING, "pre-tokenizer",
                 "the file names no pre-tokenizer; using 'default', which may split words wrongly");
    return bn_str_of("default");
}

/* Call it after bpe_init, which clears t->bpe. */
static bool open_pretok(struct tokenizer *t, const struct vocab_source *s,
                        const struct tokenizer_config *cfg, struct bn_error *err)
{
    struct bn_str name = pre_name(s, cfg);
    const struct pretok_rule *rule = pretok_rule_find(name);
    const int n_shown = bn_str_shown(name, 40);
    if (!rule && cfg->pre)
        return bn_fail(err, BN_EARG, "pre-tokenizer '%.*s' is unknown", n_shown, name.ptr);
    if (!rule) {
        bn_notes_add(
            cfg->notes, BN_NOTE_WARNING, "pre-tokenizer",
            "pre-tokenizer '%.*s' is unknown; using 'default', which may split words wrongly",
            n_shown, name.ptr);
        name = bn_str_of("default");
        rule = pretok_rule_find(name);
    }
    const size_t n = name.n_bytes < sizeof(t->pre) ? name.n_bytes : sizeof(t->pre) - 1;
    memcpy(t->pre, name.ptr, n);
    t->bpe.ignore_merges = rule->ignore_merges;
    t->info.add_bos = rule->add_bos; /* the default, from which needs_bos decides */
    t->nfc = rule->nfc;
    return pretok_open(rule, &t->pretok, err);
}

/* Open the tables of the tokenizer model: byte-level BPE or SentencePiece. */
static bool open_model(struct tokenizer *t, const struct vocab_source *s,
                       const struct tokenizer_config *cfg, struct bn_error *err)
{
    t->byte_level = bn_str_is(s->model, "gpt2");
    if (!t->byte_level) {
        t->info.add_bos = true; /* the default, from which needs_bos decides */
        t->info.add_space_prefix = s->add_space_prefix != SWITCH_OFF;
        return spm_init(&t->spm, &t->vocab, s->scores, t->marks.ids[MARK_UNK], err);
    }
    return bpe_init(&t->bpe, &t->vocab, s, err) && open_pretok(t, s, cfg, err);
}

/* Message text may contain user-defined tokens, except those that end an answer. */
static void choose_message_tokens(struct tokenizer *t)
{
    for (size_t i = 0; i < t->specials.n; i++) {
        const int32_t id = t->specials.ids[i];
        t->allowed_in_message[i] = t->vocab.types[id] == TOKEN_USER && !tokenizer_is_eog(t, id);
    }
}

static bool open_specials(struct tokenizer *t, struct bn_error *err)
{
    if (!special_init(&t->specials, &t->vocab, err))
        return false;
    t->allowed_in_message = mem_alloc(t->specials.n, 1);
    if (!t->allowed_in_message)
        return bn_fail(err, BN_ENOMEM, "no memory for %zu special tokens", t->specials.n);
    choose_message_tokens(t);
    return true;
}

/* Whether a prompt gets a bos. Without a setting in the file, info.add_bos has the default of the
 * tokenizer model or pre-tokenizer, and a bos that is also eos is not added. */
static bool needs_bos(const struct tokenizer *t, enum vocab_switch in_file)
{
    const struct tokenizer_info *info = &t->info;
    if (info->bos == TOKEN_NONE)
        return false;
    if (in_file != SWITCH_UNSET)
        return in_file == SWITCH_ON;
    return info->add_bos && info->bos != info->eos;
}

static void fill_info(struct tokenizer *t, const struct vocab_source *s)
{
    struct tokenizer_info *info = &t->info;
    info->model = t->byte_level ? "gpt2" : "llama";
    info->pre = t->pre;
    info->n_vocab = t->vocab.n;
    info->n_merges = t->bpe.n_merges;
    info->bos = t->marks.ids[MARK_BOS];
    info->eos = t->marks.ids[MARK_EOS];
    info->eot = t->marks.ids[MARK_EOT];
    info->unk = t->marks.ids[MARK_UNK];
    info->pad = t->marks.ids[MARK_PAD];
    info->eog = t->marks.eog;
    info->n_eog = t->marks.n_eog;
    info->add_bos = needs_bos(t, s->add_bos);
    info->hash = t->vocab.hash;
}

static bool open_tables(struct tokenizer *t, struct vocab_source *s,
                        const struct tokenizer_config *cfg, struct bn_error *err)
{
    const uint64_t hash = vocab_hash(s); /* before repairs */
    if (!vocab_marks_init(&t->marks, s, cfg->no_repair, cfg->notes, err) ||
        !vocab_init(&t->vocab, s, err))
        return false;
    t->vocab.hash = hash;
    if (!open_model(t, s, cfg, err) || !open_specials(t, err))
        return false;
    fill_info(t, s);
    return true;
}

bool tokenizer_open(const struct bn_file *file, const struct tokenizer_config *cfg,
                    struct tokenizer **out, struct bn_error *err)
{
    struct vocab_source source;
    if (!vocab_source_init(&source, file, err))
        return false;
    struct tokenizer *t = mem_alloc(1, sizeof(*t));
    const bool ok = t ? open_tables(t, &source, cfg, err)
                      : bn_fail(err, BN_ENOMEM, "no memory for the tokenizer");
    vocab_source_finish(&source);
    if (ok)
        *out = t;
    else
        tokenizer_close(t);
    return ok;
}

void tokenizer_close(struct tokenizer *t)
{
    if (!t)
        return;
    pretok_close(t->pretok);
    bpe_finish(&t->bpe);
    spm_finish(&t->spm);
    special_finish(&t->specials);
    mem_free(t->allowed_in_message);
    vocab_marks_finish(&t->marks);
    vocab_finish(&t->vocab);
    mem_free(t);
}

const struct tokenizer_info *tokenizer_info(const struct tokenizer *t)
{
    return &t->info;
}

bool tokenizer_is_eog(const struct tokenizer *t, int32_t id)
{
    for (size_t i = 0; i < t->marks.n_eog; i++) {
        if (t->marks.eog[i] == id)
            return true;
    }
    return false;
}

static bool in_range(const struct tokenizer *t, int32_t id)
{
    return id >= 0 && (size_t)id < t->vocab.n;
}

struct bn_str tokenizer_token_text(const struct tokenizer *t, int32_t id)
{
    return in_range(t, id) ? vocab_text(&t->vocab, id) : (struct bn_str){0};
}

bool tokenizer_add_ends(struct tokenizer *t, const int32_t *ids, size_t n, struct bn_error *err)
{
    bool ok = true;
    for (size_t i = 0; ok && i < n; i++)
        ok = !in_range(t, ids[i]) || vocab_marks_add_end(&t->marks, ids[i], err);
    t->info.eog = t->marks.eog;
    t->info.n_eog = t->marks.n_eog;
    choose_message_tokens(t);
    return ok;
}

bool tokenizer_is_user_defined(const struct tokenizer *t, int32_t id)
{
    return in_range(t, id) && t->vocab.types[id] == TOKEN_USER;
}

bool tokenizer_is_control(const struct tokenizer *t, int32_t id)
{
    return in_range(t, id) &&
           (t->vocab.types[id] == TOKEN_CONTROL || t->vocab.types[id] == TOKEN_UNKNOWN);
}

bool tokenizer_has_special(const struct tokenizer *t, struct bn_str text)
{
    return vocab_find(&t->vocab, text, VOCAB_SPECIAL) != TOKEN_NONE;
}

struct bn_str tokenizer_piece(const struct tokenizer *t, int32_t id, enum tokenizer_special special)
{
    if (special == TOKENIZER_SPECIAL_HIDE && tokenizer_is_control(t, id))
        return (struct bn_str){0};
    return tokenizer_token_text(t, id);
}
