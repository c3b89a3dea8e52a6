/*
 * Compares the manual pages with the option tables: each option has exactly one line in the page,
 * with the spelling and value of --help, and the page has no other options. Also checks that no
 * long name is a bundle of letters. The argument is the folder of the pages.
 */
#include "app/bench/bench.h"
#include "app/commands/commands.h"
#include "app/inspect/inspect.h"
#include "app/options/chat_options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define PAGE_BYTES 200000

struct page {
    const char *folder, *name;
    const struct option_table *const *tables;
    size_t n_tables;
};

/* The line of a row in a page: ".It Fl k , Fl -top-k Ar N". */
static void item_line(const struct option *row, char *out, size_t cap)
{
    char spelling[120], letter[16] = "";
    option_spelling(row, spelling, sizeof(spelling));
    const char *name = strstr(spelling, "--") + 1; /* with one dash; .Fl adds the other */
    const size_t n_name = strcspn(name, " ");
    const char *arg = name[n_name] ? name + n_name + 1 : NULL;
    if (row->letter)
        (void)snprintf(letter, sizeof(letter), "%c , Fl ", row->letter);
    (void)snprintf(out, cap, ".It Fl %s%.*s%s%s\n", letter, (int)n_name, name, arg ? " Ar " : "",
                   arg ? arg : "");
}

static char *read_page(const struct page *page)
{
    static char text[PAGE_BYTES];
    char path[1000];
    (void)snprintf(path, sizeof(path), "%s/%s.1", page->folder, page->name);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    const size_t n = fread(text, 1, sizeof(text) - 1, f);
    fclose(f);
    text[n] = '\0';
    return text;
}

static size_t count_of(const char *text, const char *line)
{
    size_t n = 0;
    for (const char *at = strstr(text, line); at; at = strstr(at + 1, line))
        n++;
    return n;
}

static void page_and_table_agree(void **state)
{
    const struct page *page = *state;
    const char *text = read_page(page);
    struct options *o;
    struct bn_error err;
    assert_true(options_open(page->tables, page->n_tables, &o, &err));
    size_t n_listed = 0;
    for (size_t i = 0; i < options_count(o); i++) {
        const struct option *row = options_row(o, i);
        char line[200];
        if (!option_on_command_line(row))
            continue;
        n_listed++;
        item_line(row, line, sizeof(line));
        if (count_of(text, line) != 1)
            fail_msg("%s.1 has not exactly one line: %s", page->name, line);
    }
    assert_int_equal(count_of(text, "\n.It Fl "), n_listed);
    options_close(o);
}

/* The kind of the option with this letter, in *kind. False: no such option. */
static bool find_letter(const struct options *o, char letter, enum option_kind *kind)
{
    for (size_t i = 0; i < options_count(o); i++)
        if (options_row(o, i)->letter == letter) {
            *kind = options_row(o, i)->kind;
            return true;
        }
    return false;
}

/* Whether "-NAME" would be flags as letters, or such flags and then a letter whose value is the
 * next word: "-qi", "-qn". */
static bool is_bundle(const struct options *o, const char *name)
{
    enum option_kind kind = OPTION_FLAG;
    for (; *name && kind == OPTION_FLAG; name++)
        if (!find_letter(o, *name, &kind))
            return false;
    return !*name;
}

/* A word with one dash and a long name is refused, so it must not be a bundle of letters. */
static void no_long_name_is_a_bundle_of_letters(void **state)
{
    const struct page *page = *state;
    struct options *o;
    struct bn_error err;
    assert_true(options_open(page->tables, page->n_tables, &o, &err));
    for (size_t i = 0; i < options_count(o); i++) {
        const char *name = options_row(o, i)->name;
        if (is_bundle(o, name))
            fail_msg("-%s is a bundle of letters and the option --%s of %s", name, name,
                     page->name);
    }
    options_close(o);
}

static void page_has_every_verb(void **state)
{
    const struct page *page = *state;
    const char *text = read_page(page);
    size_t n = 0;
    for (const struct inspect_verb *v = inspect_verbs; v->name; v++, n++) {
        char line[100];
        (void)snprintf(line, sizeof(line), "\n.It Cm %s\n", v->name);
        assert_int_equal(count_of(text, line), 1);
    }
    assert_int_equal(count_of(text, "\n.It Cm "), n);
}

static void verbs_accept_only_existing_options(void **state)
{
    struct options *o;
    struct bn_error err;
    (void)state;
    assert_true(options_open(inspect_tables, n_inspect_tables, &o, &err));
    for (const struct inspect_verb *v = inspect_verbs; v->name; v++)
        for (const char *const *name = v->options; *name; name++)
            assert_non_null(options_find(o, *name));
    options_close(o);
}

static void page_has_every_command(void **state)
{
    const struct page *page = *state;
    const char *text = read_page(page);
    size_t n = 0;
    for (const struct command *c = command_table; c->name; c++, n++) {
        char line[200];
        (void)snprintf(line, sizeof(line), "\n.It Cm /%s%s%s\n", c->name, c->args[0] ? " Ar " : "",
                       c->args);
        if (count_of(text, line) != 1)
            fail_msg("%s.1 has not exactly one line: %s", page->name, line + 1);
    }
    assert_int_equal(count_of(text, "\n.It Cm /"), n);
}

static void page_has_every_alias(void **state)
{
    const struct page *page = *state;
    const char *text = read_page(page);
    for (const struct command *c = command_table; c->name; c++) {
        char line[200];
        size_t n = (size_t)snprintf(line, sizeof(line), "\n/%s: /", c->name);
        for (const char *at = c->aliases; at && *at; at++) /* "a b" is in the page as "/a, /b" */
            n += (size_t)snprintf(line + n, sizeof(line) - n, "%s%c", *at == ' ' ? ", " : "",
                                  *at == ' ' ? '/' : *at);
        if (count_of(text, line) != (c->aliases ? 1 : 0))
            fail_msg("%s.1 has other aliases than the table: %s", page->name, line + 1);
    }
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    struct page inspect = {argv[1], "bitnet-inspect", inspect_tables, n_inspect_tables};
    struct page bench = {argv[1], "bitnet-bench", bench_tables, n_bench_tables};
    struct page chat = {argv[1], "bitnet-chat", chat_tables, n_chat_tables};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(page_and_table_agree, &chat),
        cmocka_unit_test_prestate(no_long_name_is_a_bundle_of_letters, &chat),
        cmocka_unit_test_prestate(no_long_name_is_a_bundle_of_letters, &inspect),
        cmocka_unit_test_prestate(no_long_name_is_a_bundle_of_letters, &bench),
        cmocka_unit_test_prestate(page_has_every_command, &chat),
        cmocka_unit_test_prestate(page_has_every_alias, &chat),
        cmocka_unit_test_prestate(page_and_table_agree, &inspect),
        cmocka_unit_test_prestate(page_and_table_agree, &bench),
        cmocka_unit_test_prestate(page_has_every_verb, &inspect),
        cmocka_unit_test(verbs_accept_only_existing_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
