/*
 * The status row at every width.
 */
#include "app/terminal/text/status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct status full = {.state = STATUS_GENERATING,
                                   .n_done = 57,
                                   .rate = 11.84,
                                   .n_used = 212,
                                   .n_ctx = 4096,
                                   .model = "a model",
                                   .device = "CPU",
                                   .settings = "temp 0.2",
                                   .hint = "Esc stops",
                                   .unsaved = true};

static void shows_everything_where_there_is_room(void **state)
{
    char out[300];
    (void)state;
    status_format(&full, 200, out, sizeof(out));
    assert_string_equal(out, "generating 57 | 11.8 tok/s | ctx 212/4096 5% | Esc stops | a model | "
                             "CPU | temp 0.2 | unsaved");
}

static void drops_whole_items_from_the_right_at_every_width(void **state)
{
    char all[300];
    (void)state;
    status_format(&full, 200, all, sizeof(all));
    for (size_t width = 1; width <= 200; width++) {
        char out[300];
        status_format(&full, width, out, sizeof(out));
        const size_t n = strlen(out);
        assert_true(n <= width && n > 0);
        assert_memory_equal(out, all, n);
        if (n >= strlen("generating 57")) /* what follows is the end or a separator */
            assert_true(all[n] == 0 || strncmp(all + n, " | ", 3) == 0);
        else
            assert_int_equal(n, width); /* the state alone is cut */
    }
}

static void shows_progress_and_time_left(void **state)
{
    const struct status s = {
        .state = STATUS_READING, .n_done = 128, .n_total = 512, .seconds_left = 2.2};
    const struct status loading = {.state = STATUS_LOADING, .n_done = 43, .n_total = 100};
    char out[100];
    (void)state;
    status_format(&s, 80, out, sizeof(out));
    assert_string_equal(out, "reading 128/512 25% 2 s");
    status_format(&loading, 80, out, sizeof(out));
    assert_string_equal(out, "loading 43%");
}

static void names_beyond_ascii_take_a_column_a_character(void **state)
{
    const struct status s = {.state = STATUS_READY,
                             .model = "m\xC3\xB6\xE6\xBC\xA2\xF0\x9F\x98\x80."};
    char out[100];
    (void)state;
    status_format(&s, 80, out, sizeof(out));
    assert_string_equal(out, "ready | m???.");
}

static void pressure_begins_at_80_and_95_percent(void **state)
{
    struct status s = {.n_ctx = 1000};
    static const struct {
        size_t n_used;
        int fullness;
    } cases[] = {{0, 0}, {799, 0}, {800, 1}, {949, 1}, {950, 2}, {2000, 2}};
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        s.n_used = cases[i].n_used;
        assert_int_equal(status_fullness(&s), cases[i].fullness);
    }
}

static void the_row_is_due_sooner_after_much_text(void **state)
{
    struct status_clock c = {0};
    (void)state;
    assert_int_equal(status_wait(&c, STATUS_GENERATING, 100), 0); /* never written */
    status_written(&c, STATUS_GENERATING, 100);
    c.n_text = STATUS_TEXT_BYTES - 1;
    assert_int_equal(status_wait(&c, STATUS_GENERATING, 100.75), 251);
    assert_int_equal(status_wait(&c, STATUS_GENERATING, 101), 0);
    c.n_text = STATUS_TEXT_BYTES;
    assert_in_range(status_wait(&c, STATUS_GENERATING, 100), 100, 101);
    assert_int_equal(status_wait(&c, STATUS_GENERATING, 100.125), 0);
    status_written(&c, STATUS_GENERATING, 101); /* counts the text from here */
    assert_int_equal(status_wait(&c, STATUS_GENERATING, 101.75), 251);
    c.written = 0;
    assert_int_equal(status_wait(&c, STATUS_GENERATING, 101), 0);
}

static void a_new_state_is_shown_at_once(void **state)
{
    struct status_clock c = {0};
    (void)state;
    status_written(&c, STATUS_READING, 100);
    assert_int_equal(status_wait(&c, STATUS_READING, 100.25), 251);
    assert_int_equal(status_wait(&c, STATUS_GENERATING, 100.25), 0);
    assert_int_equal(status_wait(&c, STATUS_STOPPING, 100.25), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shows_everything_where_there_is_room),
        cmocka_unit_test(drops_whole_items_from_the_right_at_every_width),
        cmocka_unit_test(shows_progress_and_time_left),
        cmocka_unit_test(names_beyond_ascii_take_a_column_a_character),
        cmocka_unit_test(pressure_begins_at_80_and_95_percent),
        cmocka_unit_test(the_row_is_due_sooner_after_much_text),
        cmocka_unit_test(a_new_state_is_shown_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
