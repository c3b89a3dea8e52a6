/*
 * Finds the text that closes a thought: see thought_close.h.
 *
 * Some templates split an answer and write its thought, then the text that closes the thought, then
 * the rest. Other templates write a closed thought at the end of the prompt when thoughts are off.
 */
#define _GNU_SOURCE /* memmem */
#include "app/chat/conversation/thought_close.h"

#include "app/options/model_args.h"

#define MARKER "</think>"
#define USUAL "\n" MARKER "\n\n" /* if the template has no such text of at most MAX_BYTES */
#define MAX_BYTES 100 /* a longer text is no marker: a hostile template must not fill the context */

struct search {
    const struct prompt_maker *m;
    struct template_arena *arena;
};

/* The offset of the word in the text; SIZE_MAX: not found. */
static size_t find(struct bn_str text, const char *word)
{
    const char *at = memmem(text.ptr, text.n_bytes, word, strlen(word));
    return at ? (size_t)(at - text.ptr) : SIZE_MAX;
}

/* Render a question and, unless they are NULL, an answer and the next question. Without an answer
 * the generation prompt follows. *out is empty if the template refuses the conversation. */
static bool render_dialog(const struct search *s, const char *answer, const char *next,
                          struct template_value *args, struct template_output *out,
                          struct bn_error *err)
{
    struct template_arena *const a = s->arena;
    struct template_value *list = template_list(a);
    list = template_push(a, list, prompt_message(a, "user", bn_str_of("question")));
    if (answer)
        list = template_push(a, list, prompt_message(a, "assistant", bn_str_of(answer)));
    if (next)
        list = template_push(a, list, prompt_message(a, "user", bn_str_of(next)));
    const struct template_input in = {
        .messages = list, .args = args, .add_generation_prompt = !answer, .now = s->m->now};
    *out = (struct template_output){0};
    if (list && template_render(s->m->template, s->arena, &in, out, err))
        return true;
    *out = (struct template_output){0};
    return (list && err->code != BN_ENOMEM) || bn_fail(err, BN_ENOMEM, "out of memory");
}

static bool ends_with(struct bn_str text, const char *word)
{
    const size_t n = strlen(word);
    return text.n_bytes >= n && memcmp(text.ptr + text.n_bytes - n, word, n) == 0;
}

static bool render(const struct search *s, const char *answer, struct template_value *args,
                   struct template_output *out, struct bn_error *err)
{
    return render_dialog(s, answer, NULL, args, out, err);
}

/* The text of the template between the thought and the answer of the sample in search(). Empty: the
 * template writes the answer as a whole, or without its thought. */
static struct bn_str between(const struct template_output *out)
{
    for (size_t i = 1; i + 1 < out->n_segments; i++) {
        const struct segment *s = &out->segments[i];
        if (s->kind == SEGMENT_TEMPLATE && find(s->text, MARKER) != SIZE_MAX &&
            ends_with(s[-1].text, "thought") && bn_str_is(s[1].text, "answer"))
            return s->text;
    }
    return (struct bn_str){0};
}

/* The text from </think>, with a newline directly before it, to the end of the prompt. Empty: the
 * last segment is not template text, or it does not contain <think> followed by </think>. */
static struct bn_str at_end(const struct template_output *out)
{
    if (out->n_segments == 0 || out->segments[out->n_segments - 1].kind != SEGMENT_TEMPLATE)
        return (struct bn_str){0};
    const struct bn_str text = out->segments[out->n_segments - 1].text;
    const size_t open = find(text, "<think>"), close = find(text, MARKER);
    if (open == SIZE_MAX || close == SIZE_MAX || close < open)
        return (struct bn_str){0};
    const size_t start = close > 0 && text.ptr[close - 1] == '\n' ? close - 1 : close;
    return (struct bn_str){text.ptr + start, text.n_bytes - start};
}

/* Find the text in a conversation whose answer has a thought, else at the end of a prompt with
 * thoughts off. Otherwise it is USUAL. */
static bool search(const struct search *s, struct bn_str *found, struct bn_error *err)
{
    struct template_value *args = NULL;
    struct template_output out;
    if (!model_args_template_args(s->m->options, s->m->template, s->arena, &args, err) ||
        !render(s, "<think>\nthought\n" MARKER "\n\nanswer", args, &out, err))
        return false;
    *found = between(&out);
    if (found->n_bytes > 0 && found->n_bytes <= MAX_BYTES)
        return true;
    args = template_set(s->arena, args ? args : template_dict(s->arena), "enable_thinking",
                        template_bool(s->arena, false));
    if (!args)
        return bn_fail(err, BN_ENOMEM, "out of memory");
    if (!render(s, NULL, args, &out, err))
        return false;
    *found = at_end(&out);
    if (found->n_bytes == 0 || found->n_bytes > MAX_BYTES)
        *found = bn_str_of(USUAL);
    return true;
}

bool thought_close_ids(const struct prompt_maker *m, struct token_list *out, struct bn_error *err)
{
    const struct search s = {.m = m, .arena = template_arena_open()};
    struct bn_str text = {0};
    if (!m->template || !template_info(m->template)->has_thoughts) {
        template_arena_close(s.arena);
        return true;
    }
    if (!s.arena)
        return bn_fail(err, BN_ENOMEM, "out of memory");
    bool ok = search(&s, &text, err);
    const struct segment segment = {
        .kind = SEGMENT_TEMPLATE, .text = text, .message = SEGMENT_NO_MESSAGE};
    ok = ok && tokenizer_encode(m->tokenizer, &segment, 1, TOKENIZER_BOS_NEVER, out, err);
    template_arena_close(s.arena);
    return ok;
}

bool thought_is_closed(const struct prompt_maker *m)
{
    const struct search s = {.m = m, .arena = template_arena_open()};
    struct template_value *args = NULL;
    struct template_output out;
    struct bn_error ignored; /* the result is then false */
    const bool is_closed =
        s.arena && model_args_template_args(m->options, m->template, s.arena, &args, &ignored) &&
        render(&s, NULL, args, &out, &ignored) && at_end(&out).n_bytes > 0;
    template_arena_close(s.arena);
    return is_closed;
}

/* *prompt: one question and the generation prompt. *next: this question, its answer and the next
 * question. The answer is as a model generates it when the prompt ended with <think>. False also if
 * the template refuses one of them: then *err may be unset. */
static bool encode_dialogs(const struct search *s, struct token_list *prompt,
                           struct token_list *next, struct bn_error *err)
{
    const struct tokenizer *t = s->m->tokenizer;
    struct template_value *args = NULL;
    struct template_output out;
    return model_args_template_args(s->m->options, s->m->template, s->arena, &args, err) &&
           render(s, NULL, args, &out, err) && out.n_segments > 0 &&
           tokenizer_encode(t, out.segments, out.n_segments, TOKENIZER_BOS_AUTO, prompt, err) &&
           render_dialog(s, "thought\n" MARKER "\n\nanswer", "next", args, &out, err) &&
           out.n_segments > 0 &&
           tokenizer_encode(t, out.segments, out.n_segments, TOKENIZER_BOS_AUTO, next, err);
}

size_t thought_n_unstable(const struct prompt_maker *m)
{
    const struct search s = {.m = m, .arena = m->template ? template_arena_open() : NULL};
    struct token_list prompt = {0}, next = {0};
    struct bn_error ignored; /* the result is then 0 */
    size_t n = 0, n_unstable = 0;
    if (s.arena && encode_dialogs(&s, &prompt, &next, &ignored)) {
        while (n < prompt.n && n < next.n && prompt.ids[n] == next.ids[n])
            n++;
        n_unstable = prompt.n - n;
    }
    token_list_finish(&prompt);
    token_list_finish(&next);
    template_arena_close(s.arena);
    return n_unstable;
}
