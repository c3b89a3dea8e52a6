/*
 * /edit without a conversation: its result is that of the user's editor.
 */
#include "app/chat/chat.h"
#include "app/commands/commands.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static enum ui_tone last_tone;
static char edited[100];

static void on_suspend(struct ui *ui)
{
    (void)ui;
}

static void on_notice(struct ui *ui, enum ui_tone tone, struct bn_str text)
{
    (void)ui;
    (void)text;
    last_tone = tone;
}

static bool on_edit(struct ui *ui, struct bn_str text)
{
    (void)ui;
    assert_true(text.n_bytes < sizeof(edited));
    memcpy(edited, text.ptr, text.n_bytes);
    edited[text.n_bytes] = 0;
    return true;
}

static bool edit_with(const char *editor)
{
    const struct ui_ops ops = {.is_terminal = true,
                               .suspend = on_suspend,
                               .resume = on_suspend,
                               .notice = on_notice,
                               .edit = on_edit};
    struct chat chat = {0};
    struct ui ui = {.ops = &ops, .chat = &chat};
    struct command_host host = {.chat = &chat, .ui = &ui};
    last_tone = TONE_PLAIN;
    edited[0] = 0;
    assert_int_equal(setenv("VISUAL", editor, 1), 0);
    return cmd_edit(&host, (struct bn_str){0});
}

static void an_editor_that_fails_is_a_failed_command(void **state)
{
    (void)state;
    assert_false(edit_with("/no/such/editor"));
    assert_int_equal(last_tone, TONE_ERROR);
    assert_false(edit_with("false"));
    assert_string_equal(edited, "");
}

static void a_written_message_is_in_the_line_editor(void **state)
{
    (void)state;
    assert_true(edit_with("printf hello >"));
    assert_int_equal(last_tone, TONE_PLAIN);
    assert_string_equal(edited, "hello");
    assert_true(edit_with("true")); /* an empty file is not an error */
    assert_string_equal(edited, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_editor_that_fails_is_a_failed_command),
        cmocka_unit_test(a_written_message_is_in_the_line_editor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
