/*
 * Tests the origin of each segment, the choice of a template, and the bounds for hostile templates.
 */
#include "templates/template.h"

#include "engine/base/utf8.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

struct fixture {
    struct template_arena *arena;
    struct template *t;
    struct template_output out;
    struct bn_error err;
    struct bn_notes notes;
};

static int set_up(void **state)
{
    struct fixture *const f = calloc(1, sizeof *f);
    f->arena = template_arena_open();
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *const f = *state;
    template_arena_close(f->arena);
    template_close(f->t);
    free(f);
    return 0;
}

static struct template_value *text(struct fixture *f, const char *s)
{
    return template_string(f->arena, bn_str_of(s));
}

static struct template_value *push_message(struct fixture *f, struct template_value *list,
                                           const char *role, const char *words)
{
    struct template_value *m = template_dict(f->arena);
    m = template_set(f->arena, m, "role", text(f, role));
    m = template_set(f->arena, m, "content", text(f, words));
    return template_push(f->arena, list, m);
}

static struct template_value *conversation(struct fixture *f)
{
    struct template_value *list = template_list(f->arena);
    list = push_message(f, list, "system", "S");
    list = push_message(f, list, "user", "U <|x|>");
    list = push_message(f, list, "assistant", "A");
    return push_message(f, list, "odd", "O");
}

static bool open_text(struct fixture *f, const char *source)
{
    const struct template_config cfg = {
        .user_text = bn_str_of(source), .bos_token = bn_str_of("<s>"), .notes = &f->notes};
    template_close(f->t);
    f->t = NULL;
    return template_open(&cfg, &f->t, &f->err);
}

static bool render(struct fixture *f, const char *source, struct template_value *args)
{
    const struct template_input in = {.messages = conversation(f), .args = args};
    if (!open_text(f, source))
        return false;
    return template_render(f->t, f->arena, &in, &f->out, &f->err);
}

/* expected: kind, message and text of each segment, as in "T:text|M1:text|A2:text". */
static void assert_segments(struct fixture *f, const char *expected)
{
    char got[2000] = "";
    for (size_t i = 0; i < f->out.n_segments; i++) {
        const struct segment *const s = &f->out.segments[i];
        const size_t n = strlen(got);
        char index[24] = "";
        if (s->message != SEGMENT_NO_MESSAGE)
            (void)snprintf(index, sizeof index, "%zu", s->message);
        (void)snprintf(got + n, sizeof got - n, "%s%c%s:%.*s", i ? "|" : "",
                       s->kind == SEGMENT_TEMPLATE  ? 'T'
                       : s->kind == SEGMENT_MESSAGE ? 'M'
                                                    : 'A',
                       index, (int)s->text.n_bytes, s->text.ptr);
    }
    assert_string_equal(got, expected);
}

static void assert_renders(struct fixture *f, const char *source, const char *expected)
{
    if (!render(f, source, NULL))
        fail_msg("%s: %s", source, f->err.text);
    assert_segments(f, expected);
}

/* ---- origins ---- */

static void segments_have_the_origin_of_text(void **state)
{
    assert_renders(
        *state, "{{ bos_token }}{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}",
        "T:<s>[system]|M0:S|T:[user]|M1:U <|x|>|T:[assistant]|A2:A|T:[|M3:odd|T:]|M3:O");
}

static void origins_survive_every_operation(void **state)
{
    static const char *const cases[][2] = {
        {"{{ 'a' + messages[1].content + 'b' }}", "T:a|M1:U <|x|>|T:b"},
        {"{{ 'a' ~ messages[1].content ~ 1 }}", "T:a|M1:U <|x|>|T:1"},
        {"{{ ('a' + messages[1].content + 'b')[::-1] }}", "T:b|M1:>|x|< U|T:a"},
        {"{{ ('a' + messages[1].content + 'b')[1:3] }}", "M1:U "},
        {"{{ ('a' + messages[1].content)|upper }}", "T:A|M1:U <|X|>"},
        {"{{ ('a ' + messages[1].content)|title }}", "T:A |M1:U <|x|>"},
        {"{{ (' a ' + messages[1].content)|trim }}", "T:a |M1:U <|x|>"},
        {"{{ messages[1].content|replace('x', '<y>') }}", "M1:U <||T:<y>|M1:|>"},
        {"{{ 'p%sq'|replace('%s', messages[1].content) }}", "T:p|M1:U <|x|>|T:q"},
        {"{{ '%s-%r' % (messages[0].content, messages[1].content) }}", "M0:S|T:-'|M1:U <|x|>|T:'"},
        {"{{ '{}-{}'.format(messages[0].content, messages[1].content) }}", "M0:S|T:-|M1:U <|x|>"},
        {"{{ messages|map(attribute='content')|join(';') }}",
         "M0:S|T:;|M1:U <|x|>|T:;|A2:A|T:;|M3:O"},
        {"{{ messages[1].content.split(' ')[1] }}", "M1:<|x|>"},
        {"{{ messages[1].content|list|join }}", "M1:U <|x|>"},
        {"{{ messages[1].content|tojson }}", "T:\"|M1:U <|x|>|T:\""},
        {"{{ messages[1].content|e }}", "M1:U &lt;|x|&gt;"},
        {"{{ messages[1].content|indent(2, true) }}", "T:  |M1:U <|x|>"},
        {"{{ [messages[0].content] }}", "T:['|M0:S|T:']"},
        {"{% set x %}a{{ messages[0].content }}{% endset %}{{ x }}", "T:a|M0:S"},
        {"{% macro m(x) %}<{{ x }}>{% endmacro %}{{ m(messages[0].content) }}", "T:<|M0:S|T:>"},
        {"{% filter upper %}a{{ messages[1].content }}{% endfilter %}", "T:A|M1:U <|X|>"},
        {"{% for c in messages[1].content %}{{ c }}{% endfor %}", "M1:U <|x|>"},
        {"{{ messages[1]|list|join }}", "M1:rolecontent"},
        {"{{ strftime_now(messages[0].content) }}", "M0:S"},
        {"{{ messages[1].content.center(9, '*') }}", "T:*|M1:U <|x|>|T:*"},
        {"{{ {messages[0].content: 1}|items|first|first }}", "M0:S"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_renders(*state, cases[i][0], cases[i][1]);
}

static void arguments_are_message_text(void **state)
{
    struct fixture *const f = *state;
    struct template_value *args = template_dict(f->arena);
    args = template_set(f->arena, args, "style", text(f, "<|eot|>"));
    assert_true(render(f, "{{ bos_token }}{{ style }}", args));
    assert_segments(f, "T:<s>|M:<|eot|>");
}

static void only_role_names_are_template_text(void **state)
{
    struct fixture *const f = *state;
    struct template_value *m = template_dict(f->arena);
    m = template_set(f->arena, m, "role", template_string(f->arena, bn_str_of("user")));
    m = template_set(f->arena, m, "content", text(f, "text"));
    const struct template_input in = {.messages =
                                          template_push(f->arena, template_list(f->arena), m)};
    assert_true(open_text(f, "{{ messages[0].role }}{{ messages[0].content }}"));
    assert_true(template_render(f->t, f->arena, &in, &f->out, &f->err));
    assert_segments(f, "T:user|M0:text");
}

/* Each byte that belongs to no character becomes U+FFFD. ED A0 80 would be a surrogate. */
static void invalid_utf8_is_replaced(void **state)
{
    struct fixture *const f = *state;
    const struct template_input in = {
        .messages = push_message(f, template_list(f->arena), "user", "a\xff\xc3(\xed\xa0\x80z")};
    assert_true(open_text(f, "{{ messages[0].content|length }}{{ messages[0].content }}"));
    assert_true(template_render(f->t, f->arena, &in, &f->out, &f->err));
    assert_segments(f, "T:8|M0:a\uFFFD\uFFFD(\uFFFD\uFFFD\uFFFDz");
}

static void generation_prompt_may_start_in_thought(void **state)
{
    struct fixture *const f = *state;
    const char *const source = "{{ messages[1].content }}"
                               "{% if add_generation_prompt %}<think>\n{% endif %}</think>";
    struct template_input in = {.messages = conversation(f), .add_generation_prompt = true};
    assert_true(open_text(f, source));
    assert_true(template_info(f->t)->has_thoughts);
    assert_true(template_render(f->t, f->arena, &in, &f->out, &f->err));
    assert_false(f->out.starts_in_thought);
    assert_true(open_text(f, "{% if add_generation_prompt %}<think>\n{% endif %}"));
    assert_true(template_render(f->t, f->arena, &in, &f->out, &f->err));
    assert_true(f->out.starts_in_thought);
    in.add_generation_prompt = false;
    assert_true(template_render(f->t, f->arena, &in, &f->out, &f->err));
    assert_false(f->out.starts_in_thought);
}

/* The 27B models of the same publisher have architecture qwen35 and think. */
static void only_small_models_of_the_family_are_used_without_thoughts(void **state)
{
    static const struct {
        const char *arch, *source;
        bool is_off;
    } rows[] = {
        {"qwen3", "{{ enable_thinking }}", true},   {"qwen3", "{{ messages }}", false},
        {"qwen35", "{{ enable_thinking }}", false}, {"maple", "{{ enable_thinking }}", false},
        {"llama", "{{ enable_thinking }}", false},
    };
    struct fixture *const f = *state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct template_config cfg = {.model_text = bn_str_of(rows[i].source),
                                            .arch = bn_str_of(rows[i].arch),
                                            .notes = &f->notes};
        template_close(f->t);
        f->t = NULL;
        assert_true(template_open(&cfg, &f->t, &f->err));
        assert_int_equal(template_info(f->t)->is_thinking_off, rows[i].is_off);
    }
}

static void no_message_can_start_a_thought(void **state)
{
    struct fixture *const f = *state;
    const struct template_input in = {
        .messages = push_message(f, template_list(f->arena), "user", "<think>"),
        .add_generation_prompt = true};
    assert_true(open_text(f, "{{ messages[0].content }}"));
    assert_true(template_render(f->t, f->arena, &in, &f->out, &f->err));
    assert_false(f->out.starts_in_thought);
}

/* ---- choice ---- */

static const char *const broken = "{{ 'BITNETAssistant: ' }}";

static const char *open_auto(struct fixture *f, struct template_config cfg)
{
    cfg.choice = cfg.choice ? cfg.choice : "auto";
    cfg.notes = &f->notes;
    f->notes.n = 0;
    template_close(f->t);
    f->t = NULL;
    return template_open(&cfg, &f->t, &f->err) ? template_info(f->t)->name : NULL;
}

static void auto_runs_the_template_of_the_file(void **state)
{
    struct fixture *const f = *state;
    const struct template_config cfg = {.model_text = bn_str_of("{{ 1 }}")};
    assert_string_equal(open_auto(f, cfg), "model");
    assert_int_equal(f->notes.n, 0);
    assert_true(bn_str_is(template_info(f->t)->source, "{{ 1 }}"));
    assert_true(template_info(f->t)->is_chat);
}

static void known_wrong_template_is_repaired(void **state)
{
    struct fixture *const f = *state;
    struct template_config cfg = {.model_text = bn_str_of(broken)};
    assert_string_equal(open_auto(f, cfg), "bitnet");
    assert_int_equal(f->notes.n, 1);
    assert_string_equal(f->notes.items[0].id, "chat-template");
    assert_int_equal(f->notes.items[0].kind, BN_NOTE_REPAIR);
    cfg.no_repair = "chat-template";
    assert_string_equal(open_auto(f, cfg), "model");
    assert_int_equal(f->notes.n, 0);
}

/* vocab: the special tokens, separated by spaces. */
static bool has_token(const void *vocab, struct bn_str text)
{
    const struct bn_str all = bn_str_of(vocab);
    for (size_t at = 0; at + text.n_bytes <= all.n_bytes; at++)
        if ((at == 0 || all.ptr[at - 1] == ' ') &&
            memcmp(all.ptr + at, text.ptr, text.n_bytes) == 0 &&
            (at + text.n_bytes == all.n_bytes || all.ptr[at + text.n_bytes] == ' '))
            return true;
    return false;
}

static const char *open_vocab(struct fixture *f, const char *arch, const char *vocab,
                              const char *source)
{
    const struct template_config cfg = {.model_text = bn_str_of(source),
                                        .arch = bn_str_of(arch),
                                        .has_token = has_token,
                                        .vocab = vocab};
    return open_auto(f, cfg);
}

static void absent_template_falls_back_by_model(void **state)
{
    static const struct {
        const char *arch, *vocab, *family;
    } rows[] = {
        {"bitnet-b1.58", "<|start_header_id|> <|eot_id|>", "bitnet"},
        {"bitnet-25", "<|eot_id|>", "bitnet"},
        {"bitnet-b1.58", "<|im_start|> <|im_end|>", "chatml"},
        {"llama", "<|start_header_id|> <|end_header_id|> <|eot_id|>", "llama3"},
        {"llama", "<|im_end|> <|im_start|>", "chatml"},
        {"llama", "<|user|> <|assistant|>", "falcon3"},
    };
    struct fixture *const f = *state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_string_equal(open_vocab(f, rows[i].arch, rows[i].vocab, ""), rows[i].family);
        assert_int_equal(f->notes.n, 1);
        assert_int_equal(f->notes.items[0].kind, BN_NOTE_WARNING);
        assert_string_equal(f->notes.items[0].id, "no-chat-template");
        assert_non_null(strstr(f->notes.items[0].text, rows[i].family));
        assert_true(template_info(f->t)->is_chat);
    }
}

/* A family would write its marks as ordinary characters. */
static void no_family_replaces_an_absent_template_without_its_tokens(void **state)
{
    static const char *const vocabs[] = {"",           "</s>",
                                         "<|eot_id|>", "<|start_header_id|>",
                                         "<|im_end|>", "<|im_start|> <|eot_id|>",
                                         "<|user|>"};
    struct fixture *const f = *state;
    for (size_t i = 0; i < sizeof vocabs / sizeof vocabs[0]; i++) {
        assert_string_equal(open_vocab(f, "llama", vocabs[i], " \n"), "plain");
        assert_int_equal(f->notes.n, 1);
        assert_int_equal(f->notes.items[0].kind, BN_NOTE_WARNING);
        assert_string_equal(f->notes.items[0].id, "base-model");
        assert_string_equal(f->notes.items[0].text, "base model: plain text completion, not chat");
        assert_false(template_info(f->t)->is_chat);
    }
    assert_string_equal(open_vocab(f, "bitnet-b1.58", "</s>", ""), "plain");
    assert_string_equal(open_auto(f, (struct template_config){.arch = bn_str_of("llama")}),
                        "plain");
}

static void unsupported_template_falls_back_by_its_text(void **state)
{
    static const char *const cases[][2] = {
        {"<|start_header_id|>{% include 'x' %}", "llama3"},
        {"<|im_start|>{% include 'x' %}", "chatml"},
        {"<|user|><|assistant|>{% include 'x' %}", "falcon3"},
        {"Assistant: {% include 'x' %}", "bitnet"},
        {"{% include 'x' %}", "plain"}, /* the vocabulary has no special tokens */
    };
    struct fixture *const f = *state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct template_config cfg = {.model_text = bn_str_of(cases[i][0])};
        assert_string_equal(open_auto(f, cfg), cases[i][1]);
        assert_int_equal(f->notes.n, 1);
        assert_non_null(strstr(f->notes.items[0].text, "'include'"));
        assert_non_null(strstr(f->notes.items[0].text, cases[i][1]));
    }
    const char *const bare = "{% include 'x' %}";
    assert_string_equal(open_vocab(f, "bitnet-b1.58", "<|eot_id|>", bare), "bitnet");
    assert_string_equal(open_vocab(f, "llama", "<|im_start|> <|im_end|>", bare), "chatml");
    assert_string_equal(open_vocab(f, "llama", "<|start_header_id|> <|eot_id|>", bare), "llama3");
}

/* Of all texts, only the message "U <|x|>" has an x. */
static void every_builtin_opens_and_separates_messages_from_its_text(void **state)
{
    struct fixture *const f = *state;
    size_t n = 0;
    for (const char *const *name = template_builtin_names(); *name; name++, n++) {
        const struct template_config cfg = {.choice = *name, .eos_token = bn_str_of("</s>")};
        assert_string_equal(open_auto(f, cfg), *name);
        const struct template_input in = {.messages = conversation(f),
                                          .add_generation_prompt = true};
        assert_true(template_render(f->t, f->arena, &in, &f->out, &f->err));
        for (size_t i = 0; i < f->out.n_segments; i++)
            if (f->out.segments[i].kind == SEGMENT_TEMPLATE)
                assert_null(
                    memchr(f->out.segments[i].text.ptr, 'x', f->out.segments[i].text.n_bytes));
    }
    assert_int_equal(n, 5);
}

static void unknown_name_is_an_argument_error(void **state)
{
    struct fixture *const f = *state;
    assert_null(open_auto(f, (struct template_config){.choice = "nope"}));
    assert_int_equal(f->err.code, BN_EARG);
    assert_non_null(strstr(f->err.text, "'nope'"));
}

/* ---- errors and bounds ---- */

static void errors_name_line_column_and_reason(void **state)
{
    static const char *const cases[][2] = {
        {"a\n{{ raise_exception('roles must alternate') }}",
         "template line 2, column 19: roles must alternate"},
        {"{{ a.b.c }}", "template line 1, column 5: 'a' is undefined"},
        {"\n\n  {% if x %}", "template line 3, column 11: this block has no 'endif'"},
        {"{% for x in y %}", "template line 1, column 15: this block has no 'endfor'"},
        {"{{ 'a' + 1 }}",
         "template line 1, column 8: unsupported operand types for +: 'str' and 'int'"},
        {"{{ s|nofilter }}", "template line 1, column 6: No filter or test named 'nofilter'"},
        {"{{ s is notest }}", "template line 1, column 9: No filter or test named 'notest'"},
        {"{{ 9223372036854775807 + 1 }}",
         "template line 1, column 24: integer overflow: only 64 bits"},
        {"{{ 9000000000000000000|round(-19) }}",
         "template line 1, column 24: integer overflow: only 64 bits"},
        {"{{ -5000000000000000001|round(-19) }}",
         "template line 1, column 25: integer overflow: only 64 bits"},
        {"{{ messages.append(1) }}",
         "template line 1, column 19: methods that change a list are not allowed in a template"},
        {"{{ ['a']|map(attribute='\xc2\xb2')|list }}", /* superscript 2 */
         "template line 1, column 29: an index in an attribute path is not a decimal number"},
        {"{{ ['a']|map(attribute='9223372036854775808')|list }}",
         "template line 1, column 47: an index in an attribute path is out of range"},
    };
    struct fixture *const f = *state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_false(render(f, cases[i][0], NULL));
        assert_int_equal(f->err.code, BN_EFORMAT);
        assert_string_equal(f->err.text, cases[i][1]);
    }
}

static void the_largest_integers_are_rounded(void **state)
{
    assert_renders(
        *state,
        "{{ (-9223372036854775807 - 1)|round(-2) }} {{ 5000000000000000000|round(-19) }} "
        "{{ 9223372036854775807|round(-20) }} {{ -25|round(-1) }} {{ -35|round(-1) }}",
        "T:-9223372036854775800 0 0 -20 -40");
}

static void undefined_token_error_gives_advice(void **state)
{
    struct fixture *const f = *state;
    assert_false(render(f, "{{ bos_token + messages[0].content + eos_token }}", NULL));
    assert_non_null(
        strstr(f->err.text, "'eos_token' is undefined: the vocabulary defines no such"));
    assert_non_null(strstr(f->err.text, "--template-arg eos_token=TEXT"));
    assert_false(render(f, "{{ bos_token + other }}", NULL));
    assert_null(strstr(f->err.text, "--template-arg"));
    struct template_value *args = template_dict(f->arena);
    args = template_set(f->arena, args, "eos_token", template_string(f->arena, bn_str_of("E")));
    assert_true(render(f, "{{ bos_token + eos_token }}", args));
    assert_segments(f, "T:<s>E"); /* special tokens are found in template text only */
}

static void expensive_templates_are_stopped(void **state)
{
    static const char *const cases[] = {
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
        "{% set ns = namespace(x='xxxxxxxx') %}{% for i in range(99) %}"
        "{% set ns.x = ns.x + ns.x %}{% endfor %}",
        "{{ 'x' * 9000000000 }}",
        "{{ [0] * 9000000000 }}",
        "{{ '%900000000d' % 1 }}",
        "{{ ('x' * 90000)|replace('', 'x' * 90000) }}",
        "{{ ''.center(9000000000) }}",
        "{{ 'a'|indent(9000000000) }}",
        "{% set ns = namespace(x=[]) %}{% for i in range(9999) %}{% set ns.x = [ns.x] %}"
        "{% endfor %}{{ ns.x }}",
        "{% set ns = namespace() %}{% set ns.x = ns %}{{ ns }}",
        "{% set ns = namespace(x=[1]) %}{% for i in range(9999) %}"
        "{% set ns.x = ns.x|map('string') %}{% endfor %}{{ ns.x|list }}",
    };
    struct fixture *const f = *state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (render(f, cases[i], NULL))
            fail_msg("no error: %s", cases[i]);
        assert_int_equal(f->err.code, BN_EFORMAT);
        assert_non_null(strstr(f->err.text, "template line 1, column "));
    }
}

/* h has a million bytes, k equals it but for the last byte, w has a space at its start, and z is 0
 * with a million digits. x is a tuple of 25 levels: both items of each level are the next level. p
 * is a list of 900 levels.
 * n_calls is so small that the other work of the calls stays below the limit. */
static void loops_over_bytes_and_items_count_steps(void **state)
{
    static const struct {
        const char *call;
        int n_calls;
    } cases[] = {
        {"d[h]", 400},
        {"h.rsplit('a' * 1000 ~ 'b')", 40},
        {"h.startswith((k,) * 10)", 60},
        {"h.removesuffix(k)", 400},
        {"z|int", 400},
        {"z|float", 400},
        {"h < k", 400},
        {"'b'.strip(h)", 400},
        {"'b'.rstrip(h)", 400},
        {"w|truncate(999990)", 400},
        {"'{:.1}'.format(h)", 400},
        {"field.format(1)", 400},
        {"percent % 1", 400},
        {"strftime_now(h)|length", 60},
        {"h.strip()|length", 400},
        {"{x: 1}|length", 1},
        {"{}[x]", 1},
        {"([p] * 9999)|map(attribute='0.' * 900 ~ '0')|list", 1},
    };
    struct fixture *const f = *state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char source[1000];
        (void)snprintf(source, sizeof source,
                       "{%% set h = ('a' * 1000) * 1000 %%}{%% set k = h[1:] ~ 'b' %%}"
                       "{%% set w = ' ' ~ h %%}{%% set z = ('0' * 1000) * 1000 %%}"
                       "{%% set d = {} %%}"
                       "{%% set field = '{' ~ z ~ '}' %%}{%% set percent = '%%' ~ z ~ 'd' %%}"
                       "{%% set ns = namespace(x=()) %%}{%% for i in range(25) %%}"
                       "{%% set ns.x = (ns.x, ns.x) %%}{%% endfor %%}{%% set x = ns.x %%}"
                       "{%% set ns.x = [0] %%}{%% for i in range(900) %%}"
                       "{%% set ns.x = [ns.x] %%}{%% endfor %%}{%% set p = ns.x %%}"
                       "{%% for i in range(%d) %%}{%% set y = %s %%}{%% endfor %%}",
                       cases[i].n_calls, cases[i].call);
        if (render(f, source, NULL))
            fail_msg("no error: %s", cases[i].call);
        if (!strstr(f->err.text, "takes more than 5242880 steps"))
            fail_msg("%s: %s", cases[i].call, f->err.text);
    }
}

/* The character has three bytes: with 0, 1 and 2 bytes before it, every cut is inside one of them
 * twice. */
static void messages_are_cut_between_characters(void **state)
{
    static const char *const cases[] = {
        "{{ raise_exception('%.*s' ~ '\\u4e2d' * 300) }}",
        "{{ {}['%.*s' ~ '\\u4e2d' * 99].x }}",
        "{{ [1]|map('%.*s' ~ '\\u4e2d' * 99)|list }}",
        "{{ ('{:%.*s' ~ '\\u4e2d' * 99 ~ '}').format(1) }}",
    };
    struct fixture *const f = *state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int n_before = 0; n_before < 3; n_before++) {
            char source[100];
            (void)snprintf(source, sizeof source, cases[i], n_before, "ab");
            assert_false(render(f, source, NULL));
            assert_non_null(strstr(f->err.text, "\xe4\xb8\xad"));
            assert_int_equal(utf8_valid_bytes(f->err.text, strlen(f->err.text)),
                             strlen(f->err.text));
        }
}

static char *repeated(const char *head, const char *unit, size_t n, const char *tail)
{
    const size_t n_head = strlen(head), n_unit = strlen(unit);
    char *const s = malloc(n_head + n * n_unit + strlen(tail) + 1);
    memcpy(s, head, n_head);
    for (size_t i = 0; i < n; i++)
        memcpy(s + n_head + i * n_unit, unit, n_unit);
    memcpy(s + n_head + n * n_unit, tail, strlen(tail) + 1);
    return s;
}

/* Names are compared with each other, so their number must be limited. */
static void many_names_count_steps(void **state)
{
    static const char *const forms[][2] = {{"{% if false %}{{ f(", ") }}{% endif %}"},
                                           {"{% macro m(", ") %}{% endmacro %}"}};
    struct fixture *const f = *state;
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        const size_t n_names = 12000, cap = 20 * n_names;
        char *const source = malloc(cap);
        size_t n = (size_t)snprintf(source, cap, "%s", forms[i][0]);
        for (size_t k = 0; k < n_names; k++)
            n += (size_t)snprintf(source + n, cap - n, "%sk%zu=1", k ? "," : "", k);
        (void)snprintf(source + n, cap - n, "%s", forms[i][1]);
        assert_false(render(f, source, NULL));
        assert_non_null(strstr(f->err.text, "takes more than"));
        free(source);
    }
}

/* A variable that is found behind 80 others costs ten steps. They count when the next node runs, so
 * the sum may pass the limit without reaching it exactly. */
static void the_limit_of_steps_cannot_be_passed(void **state)
{
    struct fixture *const f = *state;
    char text[4000] = "{% with %}";
    size_t n = strlen(text);
    for (int i = 0; i < 80; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "{%% set a%d = 0 %%}", i);
    (void)snprintf(text + n, sizeof text - n,
                   "{%% for i in range(99999) %%}{%% for k in range(99999) %%}"
                   "{%% if messages %%}{%% endif %%}{%% endfor %%}{%% endfor %%}{%% endwith %%}");
    assert_false(render(f, text, NULL));
    assert_non_null(strstr(f->err.text, "takes more than"));
}

/* A found variable costs steps for the names before it. Without them these reads would take 300,000
 * steps, but 160 million comparisons. */
static void reading_a_late_name_counts_steps(void **state)
{
    struct fixture *const f = *state;
    const size_t n_names = 1600, cap = 30 * n_names;
    char *const source = malloc(cap);
    size_t n = (size_t)snprintf(source, cap, "{%% with %%}");
    for (size_t i = 0; i < n_names; i++)
        n += (size_t)snprintf(source + n, cap - n, "{%% set a%zu = 0 %%}", i);
    (void)snprintf(source + n, cap - n,
                   "{%% for i in range(100000) %%}{%% if a%zu %%}{%% endif %%}{%% endfor %%}"
                   "{%% endwith %%}",
                   n_names - 1);
    assert_false(render(f, source, NULL));
    assert_non_null(strstr(f->err.text, "takes more than"));
    free(source);
}

/* If the steps of each keyword grew with the number of the others, this would pass the limit. */
static void nine_thousand_keywords_are_accepted(void **state)
{
    struct fixture *const f = *state;
    struct template_value *many = template_dict(f->arena);
    for (int i = 0; i < 9000; i++) {
        char key[20];
        (void)snprintf(key, sizeof key, "k%d", i);
        many = template_set(f->arena, many, key, template_int(f->arena, i));
    }
    assert_true(render(f, "{{ dict(**many)|length }}",
                       template_set(f->arena, template_dict(f->arena), "many", many)));
}

static bool is_error_of_depth(const char *text)
{
    return strstr(text, "too many open brackets") ||
           strstr(text, "nested more than 120 levels deep") ||
           strstr(text, "an expression with more than 400 levels");
}

/* Without a limit the parser would use up the stack, or report the missing ends. */
static void deep_nesting_is_rejected(void **state)
{
    static const char *const units[] = {"(",      "[",        "{1:",   "not ",    "-",
                                        "a(",     "a[",       "1+",    "a.b.",    "1 if 1 else ",
                                        "a and ", "a|upper|", "'x'~(", "{%if a%}"};
    struct fixture *const f = *state;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        char *const s = repeated(units[i][0] == '{' && units[i][1] == '%' ? "" : "{{ ", units[i],
                                 30000, "upper }}");
        assert_false(open_text(f, s));
        if (!is_error_of_depth(f->err.text))
            fail_msg("%s: %s", units[i], f->err.text);
        free(s);
    }
}

static void long_flat_templates_are_accepted(void **state)
{
    struct fixture *const f = *state;
    char *const s =
        repeated("", "{{ messages[0].content }}{% if a %}{% elif b %}{% endif %}", 5000, "");
    assert_true(render(f, s, NULL));
    assert_int_equal(f->out.n_segments, 1);
    assert_int_equal(f->out.segments[0].text.n_bytes, 5000);
    free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(segments_have_the_origin_of_text, set_up, tear_down),
        cmocka_unit_test_setup_teardown(origins_survive_every_operation, set_up, tear_down),
        cmocka_unit_test_setup_teardown(arguments_are_message_text, set_up, tear_down),
        cmocka_unit_test_setup_teardown(only_role_names_are_template_text, set_up, tear_down),
        cmocka_unit_test_setup_teardown(invalid_utf8_is_replaced, set_up, tear_down),
        cmocka_unit_test_setup_teardown(generation_prompt_may_start_in_thought, set_up, tear_down),
        cmocka_unit_test_setup_teardown(only_small_models_of_the_family_are_used_without_thoughts,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(no_message_can_start_a_thought, set_up, tear_down),
        cmocka_unit_test_setup_teardown(auto_runs_the_template_of_the_file, set_up, tear_down),
        cmocka_unit_test_setup_teardown(known_wrong_template_is_repaired, set_up, tear_down),
        cmocka_unit_test_setup_teardown(absent_template_falls_back_by_model, set_up, tear_down),
        cmocka_unit_test_setup_teardown(no_family_replaces_an_absent_template_without_its_tokens,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(unsupported_template_falls_back_by_its_text, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(every_builtin_opens_and_separates_messages_from_its_text,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(unknown_name_is_an_argument_error, set_up, tear_down),
        cmocka_unit_test_setup_teardown(errors_name_line_column_and_reason, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_largest_integers_are_rounded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(undefined_token_error_gives_advice, set_up, tear_down),
        cmocka_unit_test_setup_teardown(expensive_templates_are_stopped, set_up, tear_down),
        cmocka_unit_test_setup_teardown(loops_over_bytes_and_items_count_steps, set_up, tear_down),
        cmocka_unit_test_setup_teardown(messages_are_cut_between_characters, set_up, tear_down),
        cmocka_unit_test_setup_teardown(many_names_count_steps, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_limit_of_steps_cannot_be_passed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(reading_a_late_name_counts_steps, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nine_thousand_keywords_are_accepted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(deep_nesting_is_rejected, set_up, tear_down),
        cmocka_unit_test_setup_teardown(long_flat_templates_are_accepted, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
