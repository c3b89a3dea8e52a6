/*
 * The name that a mistyped one means.
 */
#include "app/options/near_name.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const char *near_in(const char *const *names, const char *typed)
{
    struct near_name near = {.typed = bn_str_of(typed)};
    for (; *names; names++)
        (void)near_name_add(&near, *names);
    return near.best;
}

static const char *const commands[] = {"help",    "set",  "system",   "retry", "edit", "undo",
                                       "history", "save", "sessions", "quit",  NULL};

static void each_kind_of_typing_error_is_near(void **state)
{
    (void)state;
    assert_string_equal(near_in(commands, "hlep"), "help");    /* neighbours exchanged */
    assert_string_equal(near_in(commands, "sve"), "save");     /* a letter is missing */
    assert_string_equal(near_in(commands, "retrry"), "retry"); /* one too many */
    assert_string_equal(near_in(commands, "qiit"), "quit");    /* another letter */
    assert_string_equal(near_in(commands, "esssions"), "sessions");
    assert_string_equal(near_in(commands, "hsitroy"), "history"); /* two errors in seven letters */
}

static void a_beginning_is_near(void **state)
{
    (void)state;
    assert_string_equal(near_in(commands, "s"), "set"); /* the first of several */
    assert_string_equal(near_in(commands, "sess"), "sessions");
    assert_string_equal(near_in(commands, "systematic"), "system");
    assert_string_equal(near_in(commands, "sessivityzzz"), "sessions");
}

static void other_texts_are_not_near(void **state)
{
    (void)state;
    assert_null(near_in(commands, ""));
    assert_null(near_in(commands, "x"));
    assert_null(near_in(commands, "bogus"));
    assert_null(near_in(commands, "elp me"));
    assert_null(near_in(commands, "undooooooooooooooooooooooooooooooooooooooo")); /* too long */
    assert_null(near_in((const char *const[]){NULL}, "help"));
}

static void the_nearest_of_several_wins(void **state)
{
    (void)state;
    static const char *const names[] = {"temperature", "tempo", "temp", NULL};
    assert_string_equal(near_in(names, "tmep"), "temp");
    static const char *const flags[] = {"template", "temp", NULL};
    assert_string_equal(near_in(flags, "temperature"),
                        "temp"); /* the name is all of the beginning */
    assert_string_equal(near_in(names, "temppo"), "tempo");
    assert_string_equal(near_in(names, "temperatur"), "temperature");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kind_of_typing_error_is_near),
        cmocka_unit_test(a_beginning_is_near),
        cmocka_unit_test(other_texts_are_not_near),
        cmocka_unit_test(the_nearest_of_several_wins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
