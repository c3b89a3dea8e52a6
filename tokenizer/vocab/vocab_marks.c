/*
 * Finds and repairs the marks of a vocabulary: the tokens with a special role.
 *
 * If the file has no key for a mark, or the key is no id, the mark has the default id of llama.cpp.
 * A default id counts only if that token has the type control or unknown in the file: token 11, a
 * default of byte-level vocabularies, is an ordinary word in many of them (a comma in GPT-2). A
 * token of type normal that merges can build is an ordinary word and never becomes a mark only
 * because of its text: "</s>" is also an HTML tag.
 */
#include "tokenizer/vocab/vocab_marks.h"

#include "engine/base/memory.h"
#include "tokenizer/vocab/token_list.h"
#include "tokenizer/vocab/vocab.h"

#include <string.h>

/* Texts that end an answer in known model families. */
static const char *const ending_texts[] = {
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|eom_id|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "</s>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "<eos>",
    "<|end_of_text|>",
    "<|fim_pad|>",
    "<|repo_name|>",
    "<|file_sep|>",
    "<end_of_utterance>",
};
#define N_ENDINGS (sizeof(ending_texts) / sizeof(ending_texts[0]))
/* Indices in ending_texts. */
#define ENDING_END 2
#define ENDING_RETURN 3
#define ENDING_CALL 4

/* If no key names the end of a turn, the first of these texts that find_endings has found is it. */
static const char *const turn_ends[] = {
    "<|eot_id|>",    "<|im_end|>",      "<|end|>", "<end_of_turn>",
    "<|endoftext|>", "<|end_of_text|>", "<EOT>",   "_<EOT>",
};
#define N_TURN_ENDS (sizeof(turn_ends) / sizeof(turn_ends[0]))

/* Control tokens whose texts have no other sign than the brackets. */
static const char *const control_texts[] = {
    "<s>", "</s>", "<pad>", "<bos>", "<eos>", "<start_of_turn>", "[INST]", "[/INST]",
};
#define N_CONTROL_TEXTS (sizeof(control_texts) / sizeof(control_texts[0]))

/* Added tokens that belong to the text of an answer, so files give them the type user-defined. */
static const char *const tag_texts[] = {
    "<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>",
};
#define N_TAG_TEXTS (sizeof(tag_texts) / sizeof(tag_texts[0]))

struct finder {
    struct vocab_source *s;
    struct vocab_marks *m;
    struct bn_notes *notes;
    struct text_index built;    /* class 0: texts that merges build and that can be marks */
    int32_t endings[N_ENDINGS]; /* ids of ending_texts; TOKEN_NONE: no such token, or no mark */
    const char *no_repair;
};

/* A text of at least three bytes enclosed in <>, [] or ||. */
static bool looks_like_mark(struct bn_str text)
{
    if (text.n_bytes < 3)
        return false;
    const char first = text.ptr[0], last = text.ptr[text.n_bytes - 1];
    return (first == '<' && last == '>') || (first == '[' && last == ']') ||
           (first == '|' && last == '|');
}

/* Whether a merge can build a mark, so that its text is in `built`. Most merges fail this test. It
 * is true for each text that looks_like_mark or is in ending_texts. */
static bool may_build_mark(struct bn_str merge)
{
    return merge.n_bytes > 0 && memchr("<[|_", merge.ptr[0], 4) &&
           memchr(">]|", merge.ptr[merge.n_bytes - 1], 3);
}

/* Collect the texts that merges build and that can be marks. A search through all merges for each
 * token would be quadratic, and a file can have hundreds of thousands of both. */
static bool index_merges(const struct vocab_source *s, struct text_index *built,
                         struct bn_error *err)
{
    size_t n_texts = 0, n_bytes = 0;
    for (size_t i = 0; i < s->n_merges; i++) {
        if (!may_build_mark(s->merges[i]))
            continue;
        n_texts++;
        n_bytes += s->merges[i].n_bytes; /* cannot overflow: all are in one file */
    }
    if (!text_index_init(built, n_texts, n_bytes, err))
        return false;
    for (size_t i = 0; i < s->n_merges; i++) {
        struct bn_str left, right;
        /* bpe_init refuses a merge that lacks a half. */
        if (!may_build_mark(s->merges[i]) || !vocab_split_merge(s->merges[i], &left, &right))
            continue;
        char *out = text_index_buffer(built);
        memcpy(out, left.ptr, left.n_bytes);
        memcpy(out + left.n_bytes, right.ptr, right.n_bytes);
        const uint32_t number = text_index_append(built, left.n_bytes + right.n_bytes);
        if (!text_index_add(built, number, 0))
            return bn_fail(err, BN_EFORMAT, "too many merge texts collide");
    }
    return true;
}

/* Whether a merge builds exactly `text`, the text of a token that can be a mark. The file stores
 * these texts and merges in the same encoding. */
static bool merges_build(const struct finder *f, struct bn_str text)
{
    return text_index_find(&f->built, text, 0) != UINT32_MAX;
}

/* False for an ordinary word and for a byte token. */
static bool may_be_mark(const struct finder *f, int32_t id)
{
    const int32_t type = f->s->types[id];
    return type != TOKEN_BYTE && (type != TOKEN_NORMAL || !merges_build(f, f->s->tokens[id]));
}

static bool is_in(const char *const *texts, size_t n_texts, struct bn_str text)
{
    for (size_t i = 0; i < n_texts; i++)
        if (bn_str_is(text, texts[i]))
            return true;
    return false;
}

/* The type of a token in a file without types. In a byte-level vocabulary merges build all ordinary
 * words, so another token that looks like a mark was added to it. SentencePiece has no merges, so
 * only known texts are special there. Its byte tokens need their type, because it decides that an
 * answer shows the byte and not the text. */
static int32_t type_of_text(const struct finder *f, int32_t id)
{
    const struct bn_str text = f->s->tokens[id];
    const bool has_bars = text.n_bytes >= 5 && bn_str_starts(text, bn_str_of("<|")) &&
                          memcmp(text.ptr + text.n_bytes - 2, "|>", 2) == 0;
    const bool is_byte_level = bn_str_is(f->s->model, "gpt2");
    if (!is_byte_level && vocab_byte_of_text(text) >= 0)
        return TOKEN_BYTE;
    if (!looks_like_mark(text) || (is_byte_level && merges_build(f, text)))
        return TOKEN_NORMAL;
    if (is_in(tag_texts, N_TAG_TEXTS, text))
        return TOKEN_USER;
    if (bn_str_is(text, "<unk>"))
        return TOKEN_UNKNOWN;
    return is_byte_level || has_bars || is_in(control_texts, N_CONTROL_TEXTS, text) ? TOKEN_CONTROL
                                                                                    : TOKEN_NORMAL;
}

/* Without types the special tokens of the template would be read as ordinary text. */
static void repair_missing_types(struct finder *f)
{
    if (f->s->has_types)
        return;
    const size_t n = bn_repair_allowed(f->no_repair, "token-type") ? f->s->n_tokens : 0;
    size_t n_special = 0;
    for (size_t i = 0; i < n; i++) {
        f->s->types[i] = type_of_text(f, (int32_t)i);
        n_special += f->s->types[i] != TOKEN_NORMAL && f->s->types[i] != TOKEN_BYTE;
    }
    if (n_special > 0)
        bn_notes_add(f->notes, BN_NOTE_REPAIR, "token-type",
                     "the file has no tokenizer.ggml.token_type; %zu special tokens were found by "
                     "their text",
                     n_special);
    else
        bn_notes_add(f->notes, BN_NOTE_WARNING, "token-type",
                     "the file has no tokenizer.ggml.token_type; special tokens may be read as "
                     "ordinary text");
}

static bool is_mark_type(const struct vocab_source *s, uint64_t id)
{
    return s->types[id] == TOKEN_CONTROL || s->types[id] == TOKEN_UNKNOWN;
}

static int32_t default_mark(const struct vocab_source *s, enum vocab_mark mark)
{
    /* In the order of enum vocab_mark. */
    static const int8_t of_llama[N_MARKS] = {1, 2, TOKEN_NONE, TOKEN_NONE, 0, TOKEN_NONE};
    static const int8_t of_gpt2[N_MARKS] = {11, 11, TOKEN_NONE, TOKEN_NONE, TOKEN_NONE, TOKEN_NONE};
    const int32_t id = (bn_str_is(s->model, "llama") ? of_llama : of_gpt2)[mark];
    const bool fits = id >= 0 && (size_t)id < s->n_tokens && is_mark_type(s, (uint64_t)id);
    return fits ? id : TOKEN_NONE;
}

static void read_marks(struct finder *f)
{
    const struct vocab_source *s = f->s;
    for (size_t i = 0; i < N_MARKS; i++) {
        if (s->has_mark[i] && s->marks[i] < s->n_tokens) {
            f->m->ids[i] = (int32_t)s->marks[i];
            continue;
        }
        f->m->ids[i] = default_mark(s, (enum vocab_mark)i);
        if (s->has_mark[i])
            bn_notes_add(f->notes, BN_NOTE_WARNING, "special-id",
                         "key '%s' is no id in the vocabulary of %zu tokens and is ignored",
                         vocab_mark_keys[i], s->n_tokens);
    }
}

/* The text of the begin-of-text mark. A faulty converter put this text in front of control tokens,
 * also in front of the mark itself. So a doubled text is halved here. */
static struct bn_str bos_text(const struct finder *f)
{
    const int32_t id = f->m->ids[MARK_BOS];
    if (id < 0)
        return (struct bn_str){0};
    struct bn_str text = f->s->tokens[id];
    const size_t half = text.n_bytes / 2;
    if (half > 0 && text.n_bytes % 2 == 0 && memcmp(text.ptr, text.ptr + half, half) == 0)
        text.n_bytes = half;
    return text;
}

static void repair_control_texts(struct finder *f)
{
    const struct bn_str bos = bos_text(f);
    /* A mark has at least 3 bytes (looks_like_mark). */
    if (bos.n_bytes < 3 || !bn_repair_allowed(f->no_repair, "control-text"))
        return;
    size_t n_repaired = 0;
    for (size_t i = 0; i < f->s->n_tokens; i++) {
        struct bn_str *text = &f->s->tokens[i];
        if (f->s->types[i] != TOKEN_CONTROL || text->n_bytes <= bos.n_bytes ||
            !bn_str_starts(*text, bos))
            continue;
        text->ptr += bos.n_bytes;
        text->n_bytes -= bos.n_bytes;
        n_repaired++;
    }
    if (n_repaired > 0)
        bn_notes_add(f->notes, BN_NOTE_REPAIR, "control-text",
                     "stripped '%.*s' from the front of %zu control tokens", bn_str_shown(bos, 40),
                     bos.ptr, n_repaired);
}

static void find_endings(struct finder *f)
{
    bool seen[N_ENDINGS] = {false}; /* a token had this text; later ones with it are ignored */
    for (size_t k = 0; k < N_ENDINGS; k++)
        f->endings[k] = TOKEN_NONE;
    for (size_t i = 0; i < f->s->n_tokens; i++) {
        const struct bn_str text = f->s->tokens[i];
        /* A quick test that most words fail: no text in ending_texts has less than 4 or more than
         * 18 bytes, or begins with another character. */
        if (text.n_bytes < 4 || text.n_bytes > 18 || !memchr("<[_", text.ptr[0], 3))
            continue;
        for (size_t k = 0; k < N_ENDINGS; k++) {
            if (seen[k] || !bn_str_is(text, ending_texts[k]))
                continue;
            seen[k] = true;
            if (may_be_mark(f, (int32_t)i))
                f->endings[k] = (int32_t)i;
        }
    }
    /* Where <|return|> and <|call|> exist, <|end|> ends only a section of an answer. */
    if (f->endings[ENDING_RETURN] >= 0 && f->endings[ENDING_CALL] >= 0)
        f->endings[ENDING_END] = TOKEN_NONE;
}

static int32_t ending_id(const struct finder *f, const char *text)
{
    for (size_t k = 0; k < N_ENDINGS; k++) {
        if (strcmp(ending_texts[k], text) == 0)
            return f->endings[k];
    }
    return TOKEN_NONE;
}

bool vocab_marks_add_end(struct vocab_marks *m, int32_t id, struct bn_error *err)
{
    size_t at = 0;
    while (at < m->n_eog && m->eog[at] < id)
        at++;
    if (id < 0 || (at < m->n_eog && m->eog[at] == id))
        return true;
    if (!mem_grow(&m->eog, &m->eog_cap, m->n_eog + 1, sizeof(*m->eog)))
        return bn_fail(err, BN_ENOMEM, "no memory for the end-of-turn ids");
    memmove(m->eog + at + 1, m->eog + at, (m->n_eog - at) * sizeof(*m->eog));
    m->eog[at] = id;
    m->n_eog++;
    return true;
}

static void note_endings(const struct finder *f, size_t n_found)
{
    const int32_t eot = f->m->ids[MARK_EOT];
    const struct bn_str text = eot >= 0 ? f->s->tokens[eot] : (struct bn_str){0};
    bn_notes_add(f->notes, BN_NOTE_REPAIR, "end-of-turn",
                 "%zu tokens end an answer, %zu of them found by their text; end of turn is "
                 "'%.*s' (%d)",
                 f->m->n_eog, n_found, bn_str_shown(text, 40), text.ptr ? text.ptr : "", (int)eot);
}

static bool collect_endings(struct finder *f, struct bn_error *err)
{
    struct vocab_marks *m = f->m;
    if (!vocab_marks_add_end(m, m->ids[MARK_EOS], err) ||
        !vocab_marks_add_end(m, m->ids[MARK_EOT], err) ||
        !vocab_marks_add_end(m, m->ids[MARK_EOM], err))
        return false;
    if (!bn_repair_allowed(f->no_repair, "end-of-turn"))
        return true;
    const size_t n_named = m->n_eog;
    for (size_t i = 0; i < N_TURN_ENDS && m->ids[MARK_EOT] < 0; i++)
        m->ids[MARK_EOT] = ending_id(f, turn_ends[i]);
    for (size_t k = 0; k < N_ENDINGS; k++) {
        if (!vocab_marks_add_end(m, f->endings[k], err))
            return false;
    }
    if (m->n_eog > n_named)
        note_endings(f, m->n_eog - n_named);
    return true;
}

/* Correct the types as vocab_marks.h says, because message text must not produce these tokens. A
 * mark that only a key names may be an ordinary word; then it keeps its type. */
static void correct_types(struct finder *f)
{
    for (size_t k = 0; k < N_ENDINGS; k++) {
        if (f->endings[k] >= 0)
            f->s->types[f->endings[k]] = TOKEN_CONTROL;
    }
    for (size_t i = 0; i < f->m->n_eog; i++) {
        int32_t *type = &f->s->types[f->m->eog[i]];
        if (*type == TOKEN_USER)
            *type = TOKEN_CONTROL;
    }
    for (size_t i = 0; i < N_MARKS; i++) {
        const int32_t id = f->m->ids[i];
        if (id >= 0 && f->s->types[id] == TOKEN_NORMAL && looks_like_mark(f->s->tokens[id]) &&
            may_be_mark(f, id))
            f->s->types[id] = i == MARK_UNK ? TOKEN_UNKNOWN : TOKEN_CONTROL;
    }
}

bool vocab_marks_init(struct vocab_marks *m, struct vocab_source *s, const char *no_repair,
                      struct bn_notes *notes, struct bn_error *err)
{
    *m = (struct vocab_marks){0};
    struct finder f = {.s = s, .m = m, .notes = notes, .no_repair = no_repair};
    bool ok = index_merges(s, &f.built, err);
    if (ok) {
        repair_missing_types(&f);
        read_marks(&f);
        repair_control_texts(&f);
        find_endings(&f);
        ok = collect_endings(&f, err);
    }
    if (ok)
        correct_types(&f);
    else
        vocab_marks_finish(m);
    text_index_finish(&f.built);
    return ok;
}

void vocab_marks_finish(struct vocab_marks *m)
{
    mem_free(m->eog);
    *m = (struct vocab_marks){0};
}
