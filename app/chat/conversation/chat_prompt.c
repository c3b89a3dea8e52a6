/*
 * Renders a conversation and encodes it: see chat_prompt.h.
 *
 * Messages are numbered as in the rendered list: the system message, if there is one, then the
 * messages of user and assistant.
 */
#include "app/chat/conversation/chat_prompt.h"

#include "app/common/term_text.h"
#include "app/options/model_args.h"
#include "engine/base/memory.h"
#include "engine/base/size.h"

/* ---- ids of earlier answers ---- */

/* Bytes of the text to which the ids of the answer decode. */
static size_t ids_bytes(const struct tokenizer *t, const struct answer *a)
{
    size_t n_bytes = 0;
    for (size_t i = 0; i < a->n_ids; i++)
        n_bytes += tokenizer_piece(t, a->ids[i], TOKENIZER_SPECIAL_HIDE).n_bytes;
    return n_bytes;
}

/* *n_lead is how many bytes longer the text of the ids is than the answer: 0, or 1 if the answer
 * lacks the leading space that SentencePiece adds. The byte is not examined. False: the ids cannot
 * fit. */
static bool measure_ids(const struct tokenizer *t, const struct answer *a, size_t *n_lead)
{
    const size_t n_bytes = ids_bytes(t, a);
    if (a->n_ids == 0 || n_bytes < a->text.n_bytes || n_bytes - a->text.n_bytes > 1)
        return false;
    *n_lead = n_bytes - a->text.n_bytes;
    return true;
}

bool prompt_ids_fit(const struct tokenizer *t, const struct answer *a)
{
    size_t n_lead, at = 0;
    if (!measure_ids(t, a, &n_lead))
        return false;
    for (size_t i = 0; i < a->n_ids; i++) {
        struct bn_str piece = tokenizer_piece(t, a->ids[i], TOKENIZER_SPECIAL_HIDE);
        if (at == 0 && n_lead == 1 && piece.n_bytes > 0) {
            if (piece.ptr[0] != ' ')
                return false;
            piece = (struct bn_str){piece.ptr + 1, piece.n_bytes - 1};
            n_lead = 0;
        }
        if (piece.n_bytes > a->text.n_bytes - at ||
            (piece.n_bytes > 0 && memcmp(piece.ptr, a->text.ptr + at, piece.n_bytes) != 0))
            return false;
        at += piece.n_bytes;
    }
    return at == a->text.n_bytes;
}

void prompt_trim_ids(const struct tokenizer *t, struct answer *a)
{
    size_t n_bytes = ids_bytes(t, a); /* a cheap test that usually avoids the slow one */
    while (a->n_ids > 0 && (n_bytes > a->text.n_bytes + 1 || !prompt_ids_fit(t, a))) {
        a->n_ids--;
        n_bytes -= tokenizer_piece(t, a->ids[a->n_ids], TOKENIZER_SPECIAL_HIDE).n_bytes;
        if (n_bytes < a->text.n_bytes) /* fewer ids have even fewer bytes */
            a->n_ids = 0;
    }
}

/* Number of bytes of the white-space character at p, 0 if it is another character. p has n_left
 * bytes. White space is the set that Python's str.strip removes, because templates use it. */
static size_t blank_bytes(const unsigned char *p, size_t n_left)
{
    if (n_left >= 1 && ((p[0] >= 0x09 && p[0] <= 0x0D) || (p[0] >= 0x1C && p[0] <= 0x20)))
        return 1;
    if (n_left >= 2 && p[0] == 0xC2 && (p[1] == 0x85 || p[1] == 0xA0))
        return 2; /* U+0085, U+00A0 */
    if (n_left < 3)
        return 0;
    const unsigned code = (unsigned)p[0] << 16 | (unsigned)p[1] << 8 | p[2];
    const bool is_blank = code == 0xE19A80 ||                       /* U+1680 */
                          (code >= 0xE28080 && code <= 0xE2808A) || /* U+2000 .. U+200A */
                          /* U+2028, U+2029, U+202F */
                          code == 0xE280A8 || code == 0xE280A9 || code == 0xE280AF ||
                          code == 0xE2819F || code == 0xE38080; /* U+205F, U+3000 */
    return is_blank ? 3 : 0;
}

/* Remove white space at both ends. A character at the end has 1, 2 or 3 bytes: try each length. */
static struct bn_str trim(struct bn_str s)
{
    for (size_t n; (n = blank_bytes((const unsigned char *)s.ptr, s.n_bytes)) > 0;) {
        s.ptr += n;
        s.n_bytes -= n;
    }
    for (bool more = true; more;) {
        more = false;
        for (size_t n = 1; n <= 3 && n <= s.n_bytes && !more; n++) {
            if (blank_bytes((const unsigned char *)s.ptr + s.n_bytes - n, n) == n) {
                s.n_bytes -= n;
                more = true;
            }
        }
    }
    return s;
}

/* Whether the segment is the whole message, except for blanks at its ends. Templates render invalid
 * bytes as U+FFFD. */
static bool is_whole(struct bn_str segment, struct bn_str text)
{
    struct strbuf valid = {0};
    if (bn_str_equal(trim(segment), trim(text)))
        return true;
    (void)term_text_repair(text, &valid);
    const bool is_same = !valid.failed && bn_str_equal(trim(segment), trim(strbuf_str(&valid)));
    strbuf_finish(&valid);
    return is_same;
}

/* Find the ids whose text is bytes from .. to - 1 of the answer, if tokens begin and end there.
 * Tokens without text at either end are left out. */
static bool find_range(const struct tokenizer *t, const struct answer *a, size_t from, size_t to,
                       size_t *id0, size_t *id1)
{
    size_t n_lead, at = 0;
    bool begins = false, ends = false;
    if (!measure_ids(t, a, &n_lead))
        return false;
    for (size_t i = 0; i < a->n_ids; i++) {
        const size_t n = tokenizer_piece(t, a->ids[i], TOKENIZER_SPECIAL_HIDE).n_bytes;
        const size_t start = at > n_lead ? at - n_lead : 0; /* without the leading space */
        at += n;
        if (n > 0 && start == from && !begins) {
            begins = true;
            *id0 = i;
        }
        if (n > 0 && begins && at >= n_lead && at - n_lead == to) {
            ends = true;
            *id1 = i + 1;
            break;
        }
    }
    return begins && ends;
}

static bool find_part(const struct tokenizer *t, const struct answer *a, struct bn_str part,
                      size_t *id0, size_t *id1)
{
    if (part.n_bytes == 0 || part.n_bytes > a->text.n_bytes)
        return false;
    /* Try the end first: templates that drop a thought render the text after it, and the thought
     * may contain the same words. */
    const struct bn_str text = trim(a->text);
    const size_t end = (size_t)(text.ptr - a->text.ptr) + text.n_bytes;
    if (part.n_bytes <= end && find_range(t, a, end - part.n_bytes, end, id0, id1) &&
        memcmp(a->text.ptr + end - part.n_bytes, part.ptr, part.n_bytes) == 0)
        return true;
    for (size_t at = 0; at <= a->text.n_bytes - part.n_bytes; at++) {
        const char *hit =
            memchr(a->text.ptr + at, part.ptr[0], a->text.n_bytes - part.n_bytes - at + 1);
        if (!hit)
            return false;
        at = (size_t)(hit - a->text.ptr);
        if (memcmp(hit, part.ptr, part.n_bytes) == 0 &&
            find_range(t, a, at, at + part.n_bytes, id0, id1))
            return true;
    }
    return false;
}

void prompt_restore_ids(const struct tokenizer *t, struct segment *segments, size_t n_segments,
                        const struct answer *const *answers, size_t n_answers)
{
    for (size_t i = 0; i < n_segments; i++) {
        struct segment *s = &segments[i];
        if (s->kind != SEGMENT_ANSWER || s->message >= n_answers || !answers[s->message])
            continue;
        const struct answer *a = answers[s->message];
        size_t id0 = 0, id1 = a->n_ids;
        if (!prompt_ids_fit(t, a))
            continue;
        if (!is_whole(s->text, a->text) && !find_part(t, a, s->text, &id0, &id1))
            continue;
        *s = (struct segment){.kind = SEGMENT_IDS,
                              .ids = a->ids + id0,
                              .n_ids = id1 - id0,
                              .message = SEGMENT_NO_MESSAGE};
    }
}

struct encoder {
    const struct prompt_maker *m;
    const struct transcript_state *state;
    const struct prompt_window *window;
};

/* ---- the list of messages ---- */

struct message_list {
    struct template_arena *arena;
    struct template_value *list;
    const struct answer **answers; /* (n) the answer of message i; NULL for other messages */
    size_t n;
    size_t system, question; /* index of the system message and of the last message of the user;
                                SIZE_MAX: there is none, or it is blank */
};

struct template_value *prompt_message(struct template_arena *arena, const char *role,
                                      struct bn_str content)
{
    struct template_value *m = template_dict(arena);
    m = template_set(arena, m, "role", template_string(arena, bn_str_of(role)));
    return template_set(arena, m, "content", template_string(arena, content));
}

static void push_message(struct message_list *l, const char *role, struct bn_str text,
                         const struct answer *answer)
{
    l->list = template_push(l->arena, l->list, prompt_message(l->arena, role, text));
    l->answers[l->n++] = answer;
}

/* The index of the next message for `system` and `question` of the list. */
static size_t next_index(const struct message_list *l, struct bn_str text)
{
    return trim(text).n_bytes > 0 ? l->n : SIZE_MAX;
}

/* A thought that was stopped has no </think>. If its <think> was in the prompt, the template would
 * take it for an answer without a thought, so the end is added as the model would write it. */
static void push_answer(struct message_list *l, const struct prompt_maker *m,
                        const struct answer *a)
{
    struct strbuf closed = {0};
    if (prompt_answer_mode(m, a) != THOUGHT_RUNNING || thought_has_end(a->text)) {
        push_message(l, "assistant", a->text, a);
        return;
    }
    strbuf_add_str(&closed, a->text);
    strbuf_add_text(&closed, "\n</think>\n\n");
    push_message(l, "assistant", strbuf_str(&closed), a);
    if (closed.failed)
        l->list = NULL; /* the caller reports that memory ran out */
    strbuf_finish(&closed);
}

static bool has_answer(const struct exchange *e)
{
    return e->answer.finish != FINISH_NONE;
}

/* The index of the first turn in the window that is not before index i. */
static size_t next_turn(const struct prompt_window *w, size_t i)
{
    return i >= w->n_first && i < w->n_skipped ? w->n_skipped : i;
}

static void push_state(struct message_list *l, const struct encoder *encoder)
{
    const struct transcript_state *s = encoder->state;
    const struct prompt_window *w = encoder->window;
    l->system = l->question = SIZE_MAX;
    if (s->system.n_bytes > 0) {
        l->system = next_index(l, s->system);
        push_message(l, "system", s->system, NULL);
    }
    for (size_t i = next_turn(w, 0); i < s->n; i = next_turn(w, i + 1)) {
        const struct exchange *e = s->items[i];
        /* The answer of the last turn is generated next, or is added by encode. */
        const bool is_open = i + 1 == s->n && w->mode != PROMPT_WHOLE;
        l->question = next_index(l, e->user);
        push_message(l, "user", e->user, NULL);
        if (has_answer(e) && !is_open)
            push_answer(l, encoder->m, &e->answer);
    }
    if (w->mode == PROMPT_START)
        push_message(l, "user", bn_str_of("x"), NULL); /* cut_before removes its text */
}

/* Whether no segment has text of this message. Every text keeps the index of its message, also one
 * that the template changes. SIZE_MAX: false. */
static bool is_left_out(const struct template_output *rendered, size_t message)
{
    if (message == SIZE_MAX)
        return false;
    for (size_t i = 0; i < rendered->n_segments; i++)
        if (rendered->segments[i].message == message && rendered->segments[i].text.n_bytes > 0)
            return false;
    return true;
}

/* Remove the text of this message and all segments behind it. */
static void cut_before(struct template_output *rendered, size_t message)
{
    size_t n = 0;
    while (n < rendered->n_segments && rendered->segments[n].message != message)
        n++;
    rendered->n_segments = n;
}

static struct segment answer_segment(const struct tokenizer *t, const struct answer *a)
{
    if (prompt_ids_fit(t, a))
        return (struct segment){
            .kind = SEGMENT_IDS, .ids = a->ids, .n_ids = a->n_ids, .message = SEGMENT_NO_MESSAGE};
    return (struct segment){.kind = SEGMENT_ANSWER, .text = a->text, .message = SEGMENT_NO_MESSAGE};
}

/* ---- encoding ---- */

/* Count the ids after the last answer in the prompt: the new question, and the text of the template
 * on both sides of it. Nothing is joined across the end of an answer, so these segments are encoded
 * alone. But SentencePiece may add a space at the start; then the number may be wrong by 1. */
static bool count_new_ids(const struct tokenizer *t, const struct template_output *rendered,
                          size_t *n_new, struct bn_error *err)
{
    struct token_list ids = {0};
    size_t first = rendered->n_segments;
    while (first > 0 && rendered->segments[first - 1].kind != SEGMENT_IDS &&
           rendered->segments[first - 1].kind != SEGMENT_ANSWER)
        first--;
    *n_new = SIZE_MAX;
    if (first == 0)
        return true; /* no answer: all ids are new */
    const bool ok = tokenizer_encode(t, rendered->segments + first, rendered->n_segments - first,
                                     TOKENIZER_BOS_NEVER, &ids, err);
    *n_new = ids.n;
    token_list_finish(&ids);
    return ok;
}

static bool encode(const struct encoder *e, const struct template_output *rendered,
                   struct prompt *out, struct bn_error *err)
{
    const struct tokenizer *t = e->m->tokenizer;
    size_t n_new;
    out->starts_in_thought = rendered->starts_in_thought;
    if (!tokenizer_encode(t, rendered->segments, rendered->n_segments, TOKENIZER_BOS_AUTO,
                          &out->ids, err) ||
        !count_new_ids(t, rendered, &n_new, err))
        return false;
    out->n_earlier = out->ids.n - size_min(n_new, out->ids.n);
    if (e->window->mode != PROMPT_CONTINUE)
        return true;
    const struct segment so_far = answer_segment(t, &e->state->items[e->state->n - 1]->answer);
    const bool ok = tokenizer_encode(t, &so_far, 1, TOKENIZER_BOS_NEVER, &out->ids, err);
    out->n_earlier = out->ids.n;
    return ok;
}

static bool encode_rendered(const struct encoder *e, struct message_list *l, struct prompt *out,
                            struct bn_error *err)
{
    struct template_value *args = NULL;
    struct template_output rendered;
    l->list = template_list(l->arena);
    push_state(l, e);
    if (!l->list) /* template_render would report a bad argument */
        return bn_fail(err, BN_ENOMEM, "out of memory for the conversation");
    if (!model_args_template_args(e->m->options, e->m->template, l->arena, &args, err))
        return false;
    const struct template_input input = {.messages = l->list,
                                         .args = args,
                                         .add_generation_prompt = e->window->mode != PROMPT_WHOLE,
                                         .now = e->m->now};
    if (!template_render(e->m->template, l->arena, &input, &rendered, err))
        return bn_fail_prefix(err, "chat template");
    out->lacks_question = is_left_out(&rendered, l->question);
    out->lacks_system = is_left_out(&rendered, l->system);
    if (e->window->mode == PROMPT_START)
        cut_before(&rendered, l->n - 1);
    prompt_restore_ids(e->m->tokenizer, rendered.segments, rendered.n_segments, l->answers, l->n);
    return encode(e, &rendered, out, err);
}

static bool encode_messages(const struct encoder *e, struct prompt *out, struct bn_error *err)
{
    struct message_list list = {.arena = template_arena_open()};
    /* A system message, and two messages for each turn; or the user's message of PROMPT_START. */
    list.answers = mem_alloc(2 * e->state->n + 2, sizeof(struct answer *));
    bool ok = list.arena && list.answers;
    if (!ok)
        (void)bn_fail(err, BN_ENOMEM, "out of memory for the conversation");
    ok = ok && encode_rendered(e, &list, out, err);
    mem_free(list.answers);
    template_arena_close(list.arena);
    return ok;
}

/* --raw: the texts, without anything between them. */
static bool encode_raw(const struct encoder *e, struct prompt *out, struct bn_error *err)
{
    const struct transcript_state *s = e->state;
    struct segment *segments = mem_alloc(2 * s->n + 1, sizeof(*segments));
    struct template_output joined = {.segments = segments};
    if (!segments)
        return bn_fail(err, BN_ENOMEM, "out of memory");
    if (s->system.n_bytes > 0)
        segments[joined.n_segments++] = (struct segment){
            .kind = SEGMENT_MESSAGE, .text = s->system, .message = SEGMENT_NO_MESSAGE};
    for (size_t i = next_turn(e->window, 0); i < s->n; i = next_turn(e->window, i + 1)) {
        segments[joined.n_segments++] = (struct segment){
            .kind = SEGMENT_MESSAGE, .text = s->items[i]->user, .message = SEGMENT_NO_MESSAGE};
        if (has_answer(s->items[i]) && (i + 1 < s->n || e->window->mode == PROMPT_WHOLE))
            segments[joined.n_segments++] = answer_segment(e->m->tokenizer, &s->items[i]->answer);
    }
    const bool ok = encode(e, &joined, out, err);
    mem_free(segments);
    return ok;
}

void prompt_finish(struct prompt *p)
{
    token_list_finish(&p->ids);
    *p = (struct prompt){0};
}

bool prompt_encode(const struct prompt_maker *m, const struct transcript_state *state,
                   const struct prompt_window *window, struct prompt *out, struct bn_error *err)
{
    const struct encoder e = {.m = m, .state = state, .window = window};
    struct prompt p = {0};
    if (!(m->template ? encode_messages(&e, &p, err) : encode_raw(&e, &p, err))) {
        prompt_finish(&p);
        return false;
    }
    *out = p;
    return true;
}

static enum thought_mode mode_of(const struct prompt_maker *m, bool starts_in_thought)
{
    if (!m->template || !template_info(m->template)->has_thoughts)
        return THOUGHT_NONE;
    return starts_in_thought ? THOUGHT_RUNNING : THOUGHT_MAYBE;
}

enum thought_mode prompt_thought_mode(const struct prompt_maker *m, const struct prompt *p)
{
    return mode_of(m, p->starts_in_thought);
}

enum thought_mode prompt_answer_mode(const struct prompt_maker *m, const struct answer *a)
{
    return mode_of(m, a->starts_in_thought);
}
