/*
 * Renders short conversations and collects the special tokens of the template's own text: see
 * turn_marks.h.
 *
 * A conversation with a tool shows which token begins the turn of a tool. What follows this token
 * may be a marker inside the turn, such as <tool_response>, so it is not collected.
 */
#include "app/chat/conversation/turn_marks.h"

#include "app/chat/conversation/chat_prompt.h"
#include "app/options/model_args.h"

#include <ctype.h>

#define FULL_WIDTH_BAR "\xef\xbd\x9c" /* U+FF5C */

struct marks {
    const struct template *template;
    const struct tokenizer *tokenizer;
    struct template_arena *arena;
    const struct template_value *args; /* may be NULL */
    struct token_list found;
};

/* Messages with these roles; a NULL ends the list. */
static struct template_value *conversation(struct template_arena *a, const char *const *roles)
{
    struct template_value *list = template_list(a);
    for (size_t i = 0; roles[i]; i++)
        list = template_push(a, list, prompt_message(a, roles[i], bn_str_of("text")));
    return list;
}

/* Whether the text contains the word, which has small letters; capitals in the text match too. */
static bool contains(struct bn_str text, const char *word)
{
    const size_t n = strlen(word);
    for (size_t at = 0; at + n <= text.n_bytes; at++) {
        size_t i = 0;
        while (i < n && tolower((unsigned char)text.ptr[at + i]) == word[i])
            i++;
        if (i == n)
            return true;
    }
    return false;
}

static bool is_thought_marker(struct bn_str text)
{
    return contains(text, "think") || contains(text, "thought") || contains(text, "reason");
}

/* Whether the text has a sign: an ASCII character that is neither a letter, a digit nor a blank, or
 * the full-width bar that DeepSeek's templates use. Other characters beyond ASCII may be letters
 * and are no signs. */
static bool has_sign(struct bn_str text)
{
    for (size_t i = 0; i < text.n_bytes; i++) {
        const unsigned char c = (unsigned char)text.ptr[i];
        const struct bn_str rest = {text.ptr + i, text.n_bytes - i};
        if ((c < 128 && !isalnum(c) && !isspace(c)) ||
            bn_str_starts(rest, bn_str_of(FULL_WIDTH_BAR)))
            return true;
    }
    return false;
}

static bool has_letter(struct bn_str text)
{
    for (size_t i = 0; i < text.n_bytes; i++) {
        const unsigned char c = (unsigned char)text.ptr[i];
        if (c < 128 && isalpha(c))
            return true;
    }
    return false;
}

/* Whether the token is no marker of a thought, and is a control token or a user-defined token that
 * looks like a mark: it has an ASCII letter and a sign. Other user-defined tokens (runs of blanks,
 * digits, words) are ordinary text that a template may contain too. */
static bool may_delimit(const struct tokenizer *t, int32_t id)
{
    const struct bn_str text = tokenizer_token_text(t, id);
    if (is_thought_marker(text))
        return false;
    return tokenizer_is_control(t, id) ||
           (tokenizer_is_user_defined(t, id) && has_letter(text) && has_sign(text));
}

/* Add the first n_max marks in a text of the template, without those that end an answer already. */
static bool collect(struct marks *m, struct bn_str text, size_t n_max, struct bn_error *err)
{
    const struct segment s = {
        .kind = SEGMENT_TEMPLATE, .text = text, .message = SEGMENT_NO_MESSAGE};
    struct token_list ids = {0};
    bool ok = tokenizer_encode(m->tokenizer, &s, 1, TOKENIZER_BOS_NEVER, &ids, err);
    for (size_t i = 0, n = 0; ok && i < ids.n && n < n_max; i++) {
        if (tokenizer_is_eog(m->tokenizer, ids.ids[i]) || !may_delimit(m->tokenizer, ids.ids[i]))
            continue;
        ok = token_list_push(&m->found, ids.ids[i], err);
        n++;
    }
    token_list_finish(&ids);
    return ok;
}

/* Render a conversation. *out is empty if the template refuses it. */
static bool render(struct marks *m, const char *const *roles, struct template_output *out,
                   struct bn_error *err)
{
    const struct template_input in = {.messages = conversation(m->arena, roles),
                                      .args = m->args,
                                      .add_generation_prompt = true,
                                      .now = 0}; /* a date has no influence on the marks */
    *out = (struct template_output){0};
    if (in.messages && template_render(m->template, m->arena, &in, out, err))
        return true;
    *out = (struct template_output){0};
    return (in.messages && err->code != BN_ENOMEM) ||
           bn_fail(err, BN_ENOMEM, "out of memory for the marks of the template");
}

static bool collect_turns(struct marks *m, const char *const *roles, struct bn_error *err)
{
    struct template_output out;
    if (!render(m, roles, &out, err))
        return false;
    for (size_t i = 0; i < out.n_segments; i++)
        if (out.segments[i].kind == SEGMENT_TEMPLATE &&
            !collect(m, out.segments[i].text, SIZE_MAX, err))
            return false;
    return true;
}

/* Collect the token that begins the turn of a tool: the first mark that does not end an answer
 * already, in the template's text before the message of the tool. The last role is the tool. */
static bool collect_tool(struct marks *m, const char *const *roles, struct bn_error *err)
{
    struct template_output out;
    size_t n_roles = 0;
    while (roles[n_roles])
        n_roles++;
    if (!render(m, roles, &out, err))
        return false;
    for (size_t i = 1; i < out.n_segments; i++)
        if (out.segments[i].message == n_roles - 1 && out.segments[i - 1].kind == SEGMENT_TEMPLATE)
            return collect(m, out.segments[i - 1].text, 1, err);
    return true;
}

static bool collect_conversations(struct marks *m, struct bn_error *err)
{
    static const char *const turns[][5] = {
        {"user", "assistant", "user", NULL},
        {"system", "user", "assistant", "user", NULL},
    };
    static const char *const with_tool[] = {"user", "assistant", "tool", NULL};
    for (size_t i = 0; i < sizeof(turns) / sizeof(turns[0]); i++)
        if (!collect_turns(m, turns[i], err))
            return false;
    return collect_tool(m, with_tool, err);
}

/* With the present settings, and with thoughts on and off, because /set think may change them. */
static bool collect_all(struct marks *m, const struct options *options, struct bn_error *err)
{
    struct template_value *args;
    if (!model_args_template_args(options, m->template, m->arena, &args, err))
        return false;
    m->args = args;
    bool ok = collect_conversations(m, err);
    for (int think = 0; ok && think <= 1; think++) {
        args = template_set(m->arena, args ? args : template_dict(m->arena), "enable_thinking",
                            template_bool(m->arena, think));
        m->args = args;
        ok = args ? collect_conversations(m, err)
                  : bn_fail(err, BN_ENOMEM, "out of memory for the marks of the template");
    }
    return ok;
}

bool turn_marks_add(const struct template *template, const struct options *options,
                    struct tokenizer *tokenizer, struct bn_error *err)
{
    struct marks m = {.template = template, .tokenizer = tokenizer};
    /* TOKEN_NONE is fine: tokenizer_add_ends ignores it. */
    bool ok = token_list_push(&m.found, tokenizer_info(tokenizer)->bos, err);
    if (ok && template) {
        m.arena = template_arena_open();
        ok = m.arena ? collect_all(&m, options, err)
                     : bn_fail(err, BN_ENOMEM, "out of memory for the marks of the template");
        template_arena_close(m.arena);
    }
    ok = ok && tokenizer_add_ends(tokenizer, m.found.ids, m.found.n, err);
    token_list_finish(&m.found);
    return ok;
}
