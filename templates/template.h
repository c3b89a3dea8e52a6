/*
 * Chat templates: a conversation in, prompt segments out. PUBLIC.
 *
 * There is one path: every template, the built-in families too, is Jinja text run by the
 * interpreter in this folder, with the semantics of jinja2 as the transformers library sets it up.
 * A template comes from a file from the internet, so depth, steps, output and memory are bounded,
 * and errors name line, column and reason.
 *
 * Text that came from a message keeps that mark through every operation, so that the segments say
 * whose words they hold and no message can forge a special token. A struct template is immutable
 * after template_open; values belong to the arena they were made in.
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

/* ---- values handed to a template: null, bool, int, float, string, list, dict ---- */

struct template_arena; /* owns every value made in it, and the segments rendered from them */
struct template_value;

struct template_arena *template_arena_open(void);        /* NULL: out of memory */
void template_arena_close(struct template_arena *arena); /* NULL is fine */

/* Constructors copy what they are given. They return NULL when out of memory; a NULL handed on to
 * another constructor or to template_render gives NULL, or BN_ENOMEM, so one check at the end does.
 */
struct template_value *template_null(struct template_arena *a);
struct template_value *template_bool(struct template_arena *a, bool v);
struct template_value *template_int(struct template_arena *a, int64_t v);
struct template_value *template_float(struct template_arena *a, double v);
/* `message`: index of the message that these words are from, or SEGMENT_NO_MESSAGE for the
 * program's own text (bos_token, role names), in which special tokens are recognised. */
struct template_value *template_string(struct template_arena *a, struct bn_str text,
                                       size_t message);
struct template_value *template_list(struct template_arena *a);
struct template_value *template_dict(struct template_arena *a);
/* Append to a list; set a key of a dict (insertion order is kept). The same list or dict, or NULL.
 */
struct template_value *template_push(struct template_arena *a, struct template_value *list,
                                     struct template_value *item);
struct template_value *template_set(struct template_arena *a, struct template_value *dict,
                                    const char *key, struct template_value *item);

/* ---- choosing a template ---- */

struct template_config {
    const char *choice;       /* "auto" or a built-in's name; ignored if user_text is given */
    struct bn_str user_text;  /* the text of --template @FILE, or empty */
    struct bn_str model_text; /* the model file's own template, or empty */
    struct bn_str arch;       /* general.architecture, "" if not known: chooses a family ... */
    bool is_base_model_hint;  /* ... as does: the vocabulary has no end-of-turn token */
    struct bn_str bos_token, eos_token, unk_token, pad_token; /* texts, empty if there is none */
    const char *no_repair;  /* see bn_repair_allowed; id here: chat-template */
    struct bn_notes *notes; /* repairs, fallbacks, "base model" go here; may be NULL */
};

/* Departures from jinja2. Integers have 64 bits: overflow is an error. So is a power that is a
 * complex number. Functions and generators print without an address. Refused by name when a
 * template is opened: recursive loops; the tags block, extends, include, import, from, autoescape;
 * the filters pprint, random, urlize, wordwrap, striptags, filesizeformat, xmlattr; \N{...} in
 * strings. */

/* BN_EARG: no such built-in. BN_EFORMAT: a user's template does not parse or is beyond a bound
 * (line, column, reason). BN_EUNSUPPORTED: jinja2 would run a user's template, this interpreter
 * does not. Under "auto" a model's own template that is known to be broken, absent or beyond the
 * interpreter is replaced by a family that fits, and a note says so. */
bool template_open(const struct template_config *cfg, struct template **out, struct bn_error *err);
void template_close(struct template *t); /* NULL is fine */

struct template_info {
    const char *name;     /* "model", a built-in's name, or "file" */
    struct bn_str source; /* the Jinja text that runs */
    bool is_chat;         /* false: a base model, plain text completion */
    bool has_thoughts;    /* the source names </think> */
};
const struct template_info *template_info(const struct template *t);

/* Names of the built-in families in order; NULL ends the list. */
const char *const *template_builtin_names(void);

/* ---- rendering ---- */

struct template_input {
    /* A list of message dicts in the OpenAI form: role, content (a string or a list of parts), and
     * whatever else the template reads. Role strings system, user, assistant and tool are the
     * program's own text; any other role, and all content, carry their message's index. */
    const struct template_value *messages;
    const struct template_value
        *args; /* dict of further variables (--template-arg, tools), or NULL */
    bool add_generation_prompt;
    time_t now; /* for strftime_now; local time */
};

struct template_output {
    struct segment
        *segments; /* (n_segments), neighbours of one kind and message joined; in the arena */
    size_t n_segments;
    bool starts_in_thought; /* the generation prompt ends with <think> and blanks */
};

/* BN_EFORMAT: the template failed, raised or hit a bound: line, column, reason. BN_EARG: messages
 * or args of the wrong kind. Everything it makes lives in `arena`. */
bool template_render(const struct template *t, struct template_arena *arena,
                     const struct template_input *in, struct template_output *out,
                     struct bn_error *err);

#endif
