/*
 * The choices of Tab, for each kind of argument. Readline lists the files itself, so only the kind
 * of choice is tested for them.
 */
#include "app/commands/commands.h"
#include "app/options/chat_options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

static struct options *options;

/* Complete `word`, which follows `before`. The choices are separated by blanks. */
static void offers(const char *before, const char *word, enum line_choice_kind kind,
                   const char *choices)
{
    struct command_host host = {.options = options};
    struct line_choices out = {.kind = LINE_CHOICES_WORDS};
    command_complete(&host, bn_str_of(before), bn_str_of(word), &out);
    char text[4000];
    (void)snprintf(text, sizeof(text), "%s", strbuf_text(&out.words));
    for (char *p = text; *p; p++)
        if (*p == '\n')
            *p = p[1] ? ' ' : 0;
    assert_int_equal(out.kind, kind);
    assert_string_equal(text, choices);
    strbuf_finish(&out.words);
}

static void offers_words(const char *before, const char *word, const char *choices)
{
    offers(before, word, LINE_CHOICES_WORDS, choices);
}

static void names_of_commands_and_settings_are_completed(void **state)
{
    (void)state;
    offers_words("", "/se", "/set /sessions");
    offers_words("/help ", "k", "keys");
    offers_words("/help ", "ex", "export");
    offers_words("/help keys ", "", "");
    offers_words("/set ", "top", "top-k top-p");
    offers_words("/retry ", "te", "temp=");
    offers_words("/retry temp=1 ", "top", "top-k= top-p=");
}

static void the_second_argument_of_set_is_a_value(void **state)
{
    (void)state;
    offers_words("/set overflow ", "", "drop keep-first stop default");
    offers_words("/set overflow ", "k", "keep-first");
    offers_words("/set ", "overflow=s", "overflow=stop");
    offers_words("/set overflow = ", "s", "stop");
    offers_words("/set overflow drop ", "", "");
    offers_words("/set wrap ", "o", "on off");
    offers_words("/set think-budget ", "", "off default");
    offers_words("/set stop ", "", "off default");
    offers_words("/set temperature ", "", "default");
    offers_words("/set nonsense ", "", "");
    offers_words("/set model ", "", ""); /* fixed at start */
    offers_words("/retry ", "think=o", "think=on think=off");
    offers_words("/retry overflow ", "d", ""); /* /retry takes NAME=VALUE: no name begins with d */
}

static void fixed_words_are_completed_once(void **state)
{
    (void)state;
    offers_words("/copy ", "", "last code all");
    offers_words("/copy ", "c", "code");
    offers_words("/copy code ", "", "");
    offers_words("/ui ", "f", "full");
    offers_words("/stats ", "", "peak");
    offers_words("/probs ", "o", "off");
    offers_words("/quit ", "", "");
}

static void files_are_completed_where_a_command_takes_them(void **state)
{
    (void)state;
    offers("/export ", "a", LINE_CHOICES_FILES, "");
    offers_words("/export talk.md ", "", "");
    offers("/file one ", "", LINE_CHOICES_FILES, "");
    offers("/load ", "~/", LINE_CHOICES_FILES, "");
    offers("/system ", "@a", LINE_CHOICES_AT_FILES, "");
    offers_words("/system ", "a", "");
    offers_words("/system see ", "@a", "");
    offers("see ", "@a", LINE_CHOICES_AT_FILES, "");
}

static void a_saved_chat_is_completed_once(void **state)
{
    static const char *const names[] = {"my long trip", "my trip", "other"};
    char folder[] = "/tmp/complete-XXXXXX", path[200];
    (void)state;
    assert_non_null(mkdtemp(folder));
    assert_int_equal(setenv("XDG_DATA_HOME", folder, 1), 0);
    (void)snprintf(path, sizeof(path), "%s/bitnet-chat", folder);
    assert_int_equal(mkdir(path, 0700), 0);
    (void)snprintf(path, sizeof(path), "%s/bitnet-chat/sessions", folder);
    assert_int_equal(mkdir(path, 0700), 0);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        (void)snprintf(path, sizeof(path), "%s/bitnet-chat/sessions/%s.json", folder, names[i]);
        FILE *f = fopen(path, "w");
        assert_non_null(f);
        assert_int_equal(fclose(f), 0);
    }
    offers_words("/load ", "o", "other");
    offers_words("/load other ", "", "");
    offers_words("/load my ", "", "long trip trip");
    offers_words("/save my ", "t", "trip");
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        (void)snprintf(path, sizeof(path), "%s/bitnet-chat/sessions/%s.json", folder, names[i]);
        assert_int_equal(remove(path), 0);
    }
    for (const char *const *below =
             (const char *const[]){"/bitnet-chat/sessions", "/bitnet-chat", "", NULL};
         *below; below++) {
        (void)snprintf(path, sizeof(path), "%s%s", folder, *below);
        assert_int_equal(remove(path), 0);
    }
}

static int set_up(void **state)
{
    struct bn_error err;
    (void)state;
    return chat_options_open(&options, &err) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    options_close(options);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_commands_and_settings_are_completed),
        cmocka_unit_test(the_second_argument_of_set_is_a_value),
        cmocka_unit_test(fixed_words_are_completed_once),
        cmocka_unit_test(files_are_completed_where_a_command_takes_them),
        cmocka_unit_test(a_saved_chat_is_completed_once),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
