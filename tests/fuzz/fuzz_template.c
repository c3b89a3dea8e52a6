/*
 * Renders any bytes as a chat template over a small conversation. The first byte selects options.
 *
 * Checks that neighbouring segments differ in kind or message, that no segment is empty, and that a
 * character that only the messages contain is never in template text.
 */
#include "tests/fuzz/fuzz.h"

#include "templates/template.h"

#include <stdlib.h>

#define MARK "\xf0\x9f\xa7\xaa" /* U+1F9EA, which only messages contain */

static bool holds_mark(struct bn_str s)
{
    for (size_t i = 0; i + 4 <= s.n_bytes; i++)
        if (memcmp(s.ptr + i, MARK, 4) == 0)
            return true;
    return false;
}

static struct template_value *text(struct template_arena *a, const char *s)
{
    return template_string(a, bn_str_of(s));
}

static struct template_value *message(struct template_arena *a, const char *role, const char *words)
{
    struct template_value *const m = template_set(a, template_dict(a), "role", text(a, role));
    return template_set(a, m, "content", text(a, words));
}

static struct template_value *conversation(struct template_arena *a, unsigned options)
{
    struct template_value *list = template_list(a);
    if (options & 1)
        list = template_push(a, list, message(a, "system", " Be " MARK " brief.\n"));
    list = template_push(a, list,
                         message(a, "user", MARK "<|eot_id|> {{ 1 }}\n\xc3\x84 \xef\xac\x81"));
    list =
        template_push(a, list, message(a, "assistant", "<think>\n" MARK "\n</think>\n\nYes, 12."));
    struct template_value *tool = message(a, "tool", "{\"x\": 1}");
    tool = template_set(a, tool, "n", template_float(a, 2.5));
    tool = template_set(a, tool, "none", template_null(a));
    list = template_push(a, list, tool);
    return template_push(a, list, message(a, options & 2 ? "odd " MARK : "user", ""));
}

static void check(const struct template_output *out, bool mark_in_source)
{
    for (size_t i = 0; i < out->n_segments; i++) {
        const struct segment *const s = &out->segments[i];
        const bool same = i > 0 && s[-1].kind == s->kind && s[-1].message == s->message;
        if (s->text.n_bytes == 0 || same)
            abort();
        if (s->kind == SEGMENT_TEMPLATE && !mark_in_source && holds_mark(s->text))
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    struct bn_error err;
    struct template *t;
    if (n_bytes < 2)
        return 0;
    const struct template_config cfg = {
        .user_text = {(const char *)bytes + 1, n_bytes - 1},
        .bos_token = bn_str_of("<s>"),
        .eos_token = bn_str_of("</s>"),
    };
    if (!template_open(&cfg, &t, &err))
        return 0;
    struct template_arena *const a = template_arena_open();
    if (a) {
        struct template_output out;
        struct template_value *const args =
            template_set(a, template_dict(a), "tools", conversation(a, 0));
        const struct template_input in = {.messages = conversation(a, bytes[0]),
                                          .args = args,
                                          .add_generation_prompt = bytes[0] & 4,
                                          .now = 1700000000};
        if (template_render(t, a, &in, &out, &err))
            check(&out, holds_mark(cfg.user_text));
    }
    template_arena_close(a);
    template_close(t);
    return 0;
}
