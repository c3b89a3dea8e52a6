/*
 * Chat templates: a conversation in, prompt segments out. Public header.
 *
 * All templates are Jinja text, including the built-in families. The interpreter in jinja/ runs
 * them with the semantics of jinja2 as the transformers library configures it. Templates are
 * untrusted, so depth, steps and memory (with the output) are bounded. Syntax errors and errors of
 * a running statement give line and column.
 *
 * Text from a message keeps its origin through every operation on its characters. Numbers and the
 * fill characters of padding have no origin and print as template text. Each segment reports the
 * origin of its text, so a message cannot forge a control token. A struct template is immutable
 * after template_open, so threads may share it; an arena belongs to one thread at a time. Values
 * belong to the arena in which they were made.
 */
#ifndef TEMPLATES_TEMPLATE_H
#define TEMPLATES_TEMPLATE_H

#include "engine/base/error.h"
#include "engine/base/notes.h"
#include "engine/base/str.h"
#include "tokenizer/segment.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

struct template;

/* ---- values for a template: null, bool, int, float, string, list, dict ---- */

struct template_arena; /* owns the values made in it, and the segments that are rendered with it */
struct template_value;

struct template_arena *template_arena_open(void);        /* NULL: out of memory */
void template_arena_close(struct template_arena *arena); /* NULL is fine */

/* Constructors copy their arguments. The functions of this section return NULL when out of
 * memory, or if the arena or a value is NULL. So calls can be nested, and one check of the last
 * result is enough. */
struct template_value *template_null(struct template_arena *a);
struct template_value *template_bool(struct template_arena *a, bool v);
struct template_value *template_int(struct template_arena *a, int64_t v);
struct template_value *template_float(struct template_arena *a, double v);
/* Each byte that is not part of valid UTF-8 becomes U+FFFD, also in a key of template_set. */
struct template_value *template_string(struct template_arena *a, struct bn_str text);
struct template_value *template_list(struct template_arena *a);
struct template_value *template_dict(struct template_arena *a);
/* template_push appends to a list. template_set sets a key of a dict: a new key comes last, an old
 * one keeps its place and gets the new value. `item` is shared, not copied, so its arena must live
 * as long as the list or dict. Both return their second argument, or NULL on failure, also if it is
 * not a list or not a dict. */
struct template_value *template_push(struct template_arena *a, struct template_value *list,
                                     struct template_value *item);
struct template_value *template_set(struct template_arena *a, struct template_value *dict,
                                    const char *key, struct template_value *item);

/* ---- choosing a template ---- */

struct template_config {
    const char *choice;       /* NULL, "auto" or a built-in's name; ignored if user_text is set */
    struct bn_str user_text;  /* the text of --template @FILE, or empty */
    struct bn_str model_text; /* the model file's own template, or empty */
    struct bn_str arch;       /* general.architecture, or ""; for the family and is_thinking_off */
    /* Whether the vocabulary has a special token with this text. The first argument is the member
     * `vocab` below. NULL: the vocabulary has no special tokens. A family replaces an absent
     * template only if the vocabulary has its tokens. */
    bool (*has_token)(const void *vocab, struct bn_str text);
    const void *vocab;
    /* Texts. If a text is empty or not UTF-8, the template sees no such token. */
    struct bn_str bos_token, eos_token, unk_token, pad_token;
    const char *no_repair;  /* see bn_repair_allowed; the only id used here is chat-template */
    struct bn_notes *notes; /* receives repairs and fallbacks; may be NULL */
};

/* Differences from jinja2. Integers have 64 bits, and overflow is an error. A power with a complex
 * result is an error. `is sameas`, and `in` for NaN, compare numbers by value, where Python
 * compares objects. Functions and generators print without an address. template_open rejects with a
 * message: recursive loops; the tags block, extends, include, import, from, autoescape; the filters
 * pprint, random, urlize, wordwrap, striptags, filesizeformat, xmlattr; \N{...} in strings. `self`
 * and `lipsum` are undefined, and so are `tools` and `documents` without an argument, where the
 * transformers library passes none. */

/* BN_EARG: no such built-in. BN_EFORMAT: a user's template does not parse or exceeds a bound.
 * BN_EUNSUPPORTED: a user's template has one of the tags, filters or loops that are named above.
 * BN_ENOMEM. With "auto", a built-in family replaces the model's own template if it is absent,
 * cannot be parsed, exceeds a bound or is not supported. It also replaces a template that is known
 * to be wrong, unless no_repair forbids it. The family is "plain" if neither the text of the
 * template nor the vocabulary shows another one. A note reports the replacement. The template keeps
 * copies of the texts in cfg. A model_text of white space only counts as absent. */
bool template_open(const struct template_config *cfg, struct template **out, struct bn_error *err);
void template_close(struct template *t); /* NULL is fine */

struct template_info {
    const char *name;     /* "model", a built-in's name, or "file" */
    struct bn_str source; /* the Jinja text that runs */
    bool is_chat;         /* false only for "plain": text completion, no chat */
    bool has_thoughts;    /* the source contains </think> */
    /* The publisher of the model turns thoughts off. This is so for small Bonsai models. They are
     * recognised by the architecture qwen3 and a source that contains "enable_thinking", so other
     * models with both count too. */
    bool is_thinking_off;
};
const struct template_info *template_info(const struct template *t); /* valid as long as t */

/* Names of the built-in families; the list ends with NULL. */
const char *const *template_builtin_names(void);

/* ---- rendering ---- */

struct template_input {
    /* A list of message dicts in the OpenAI form: role, content (a string or a list of parts), and
     * any other key that the template reads. The role names system, user, assistant and tool become
     * template text, the content of an assistant message becomes answer text, and all other text
     * message text. Answer and message text keep the index of the message. */
    const struct template_value *messages;
    /* A dict of more variables (--template-arg, tools), or NULL. They replace variables of the same
     * name. Their texts become message text, except those of bos_token, eos_token, unk_token and
     * pad_token, which become template text: special tokens are found in it. */
    const struct template_value *args;
    bool add_generation_prompt;
    time_t now; /* for the template function strftime_now, which formats it in local time */
};

struct template_output {
    struct segment *segments; /* (n_segments), in the arena; neighbours differ in kind or message */
    size_t n_segments;
    bool starts_in_thought; /* the generation prompt ends with <think>; white space may follow */
};

/* BN_EFORMAT: the template failed, called raise_exception or exceeded a bound. BN_EARG: messages is
 * NULL or not a list, or args is not a dict. BN_ENOMEM. The output lives in `arena` and shares no
 * bytes with the messages. It may have no segments. */
bool template_render(const struct template *t, struct template_arena *arena,
                     const struct template_input *in, struct template_output *out,
                     struct bn_error *err);

#endif
