/*
 * Entries that begin with a slash: command or message.
 */
#include "app/common/slash.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void expect(const char *entry, enum slash_kind kind, const char *name, const char *text)
{
    const struct slash s = slash_parse(bn_str_of(entry));
    assert_int_equal(s.kind, kind);
    assert_true(bn_str_is(s.name, name));
    assert_true(bn_str_is(s.text, text));
}

static void a_slash_begins_a_command(void **state)
{
    (void)state;
    expect("/help", SLASH_COMMAND, "help", "");
    expect("/set temp 0.5  ", SLASH_COMMAND, "set", "temp 0.5");
    expect("/?", SLASH_COMMAND, "?", "");
    expect("/", SLASH_COMMAND, "", "");
}

static void a_path_is_a_message(void **state)
{
    (void)state;
    expect("/usr/bin/env is what?", SLASH_MESSAGE, "", "/usr/bin/env is what?");
    expect("/file a/b", SLASH_COMMAND, "file", "a/b");
}

static void two_slashes_or_a_blank_begin_a_message(void **state)
{
    (void)state;
    expect("//help", SLASH_MESSAGE, "", "/help");
    expect(" /help", SLASH_MESSAGE, "", " /help");
}

static void several_lines_are_a_message(void **state)
{
    (void)state;
    expect("/help\nmore", SLASH_MESSAGE, "help", "/help\nmore");
    expect("/set temp\nmore", SLASH_MESSAGE, "set", "/set temp\nmore");
    expect("/a/b\nmore", SLASH_MESSAGE, "", "/a/b\nmore");
    expect("//help\nmore", SLASH_MESSAGE, "", "/help\nmore");
    expect("one\n/help", SLASH_MESSAGE, "", "one\n/help");
}

static void blank_entries_are_nothing(void **state)
{
    (void)state;
    expect("", SLASH_NOTHING, "", "");
    expect(" \n\t", SLASH_NOTHING, "", "");
    expect("\"\"\"\n\"\"\"", SLASH_NOTHING, "", "");
}

static void fences_around_a_message_are_removed(void **state)
{
    (void)state;
    expect("\"\"\"a\n  b\"\"\"", SLASH_MESSAGE, "", "a\n  b");
    expect("\"\"\"\n/help\n\"\"\"", SLASH_MESSAGE, "", "/help");
    expect("\"\"\"open", SLASH_MESSAGE, "", "\"\"\"open");
    expect("\"\"\"a\"\"\"\"", SLASH_MESSAGE, "", "a\"");
}

/* Like pasted Python that begins and ends with a docstring. */
static void fences_of_two_texts_are_kept(void **state)
{
    (void)state;
    static const char two[] = "\"\"\"a\"\"\"\nb\n\"\"\"c\"\"\"";
    expect(two, SLASH_MESSAGE, "", two);
}

static void a_fence_is_closed_by_the_next(void **state)
{
    (void)state;
    static const char closed[] = "\"\"\"a\n\"\"\" b";
    const char *close = closed;
    assert_true(slash_fence("\"\"\"\"\"", &close));
    assert_null(close);
    assert_true(slash_fence(closed, &close));
    assert_ptr_equal(close, closed + 5);
    assert_false(slash_fence(" \"\"\"", &close));
    assert_false(slash_fence("\"\"", &close));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slash_begins_a_command),
        cmocka_unit_test(a_path_is_a_message),
        cmocka_unit_test(two_slashes_or_a_blank_begin_a_message),
        cmocka_unit_test(several_lines_are_a_message),
        cmocka_unit_test(blank_entries_are_nothing),
        cmocka_unit_test(fences_around_a_message_are_removed),
        cmocka_unit_test(fences_of_two_texts_are_kept),
        cmocka_unit_test(a_fence_is_closed_by_the_next),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
