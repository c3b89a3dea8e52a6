/*
 * Notes, the list of repairs that are switched off, and log lines.
 */
#include "engine/base/log.h"
#include "engine/base/notes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void repairs_are_switched_off_by_whole_id(void **state)
{
    (void)state;
    assert_true(bn_repair_allowed(NULL, "chat-template"));
    assert_true(bn_repair_allowed("", "chat-template"));
    assert_false(bn_repair_allowed("all", "chat-template"));
    assert_false(bn_repair_allowed("x,chat-template,y", "chat-template"));
    assert_false(bn_repair_allowed("chat-template", "chat-template"));
    assert_true(bn_repair_allowed("chat", "chat-template"));
    assert_true(bn_repair_allowed("chat-template-2,,", "chat-template"));
}

static void a_full_list_counts_what_it_drops(void **state)
{
    (void)state;
    struct bn_notes notes = {0};
    for (int i = 0; i < BN_NOTES_MAX + 3; i++)
        bn_notes_add(&notes, BN_NOTE_INFO, "n", "note %d", i);
    assert_int_equal(notes.n, BN_NOTES_MAX);
    assert_int_equal(notes.n_dropped, 3);
    assert_string_equal(notes.items[5].text, "note 5");
    bn_notes_add(NULL, BN_NOTE_INFO, "n", "ignored");
}

static void a_long_note_is_cut_between_characters(void **state)
{
    (void)state;
    struct bn_notes notes = {0};
    char text[301];
    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = "\xc3\xa9"[i % 2];
    text[sizeof(text) - 1] = 0;
    bn_notes_add(&notes, BN_NOTE_INFO, "n", "%s", text);
    assert_int_equal(strlen(notes.items[0].text), sizeof(notes.items[0].text) - 2);
    bn_notes_add(&notes, BN_NOTE_INFO, "n", "a%s", text);
    assert_int_equal(strlen(notes.items[1].text), sizeof(notes.items[1].text) - 1);
}

struct sink {
    char line[64];
    enum bn_log_level level;
};

static void keep_line(void *ud, enum bn_log_level level, const char *line)
{
    struct sink *sink = ud;
    sink->level = level;
    strncpy(sink->line, line, sizeof(sink->line) - 1);
}

static void log_lines_reach_the_sink(void **state)
{
    (void)state;
    struct sink sink = {.line = ""};
    const struct bn_log log = {keep_line, &sink};
    bn_log(&log, BN_LOG_WARNING, "%d of %d", 1, 2);
    assert_string_equal(sink.line, "1 of 2");
    assert_int_equal(sink.level, BN_LOG_WARNING);
    bn_log(&(struct bn_log){0}, BN_LOG_WARNING, "silent");
    bn_log(NULL, BN_LOG_WARNING, "silent");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(repairs_are_switched_off_by_whole_id),
        cmocka_unit_test(a_long_note_is_cut_between_characters),
        cmocka_unit_test(a_full_list_counts_what_it_drops),
        cmocka_unit_test(log_lines_reach_the_sink),
    };
    return cmocka_run_group_tests_name("notes", tests, NULL, NULL);
}
