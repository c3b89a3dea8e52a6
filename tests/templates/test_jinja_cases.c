/*
 * The recorded cases: each template in cases/ renders as in jinja2, and fails where jinja2 fails. A
 * case is the input of case_run with the text "want", or without it where jinja2 fails.
 */
#include "tests/templates/case_run.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct tally {
    size_t n_cases, n_errors, n_wrong;
};

static void check(const char *file, json_t *in, struct tally *tally)
{
    json_t *const out = case_run(in);
    const json_t *const expected = json_object_get(in, "want");
    const json_t *const text = json_object_get(out, "text");
    const char *const error = json_string_value(json_object_get(out, "error"));
    /* A message about a parsing or rendering error begins with its line and column. */
    const bool right =
        expected ? text && json_equal(expected, text)
                 : error && strncmp(error, "template line ", 14) == 0 && strstr(error, ", column ");
    tally->n_cases++;
    tally->n_errors += expected == NULL;
    if (!right) {
        tally->n_wrong++;
        fprintf(stderr, "%s: %s\n  expected %s\n  got      %s\n", file,
                json_string_value(json_object_get(in, "template")),
                expected ? json_string_value(expected) : "an error",
                text ? json_string_value(text) : error);
    }
    json_decref(out);
}

static void run_file(const char *path, struct tally *tally)
{
    json_error_t why;
    json_t *const whole = json_load_file(path, JSON_ALLOW_NUL, &why);
    json_t *case_, *shared = json_object_get(whole, "shared");
    size_t i;
    if (!whole)
        fail_msg("%s: %s", path, why.text);
    json_array_foreach(json_object_get(whole, "cases"), i, case_)
    {
        json_t *const in = json_copy(shared);
        assert_int_equal(json_object_update(in, case_), 0);
        check(path, in, tally);
        json_decref(in);
    }
    json_decref(whole);
}

static struct tally run_all(void)
{
    struct tally tally = {0};
    DIR *const folder = opendir(CASES_DIR);
    assert_non_null(folder);
    for (const struct dirent *entry; (entry = readdir(folder));) {
        char path[4096];
        if (!strstr(entry->d_name, ".json"))
            continue;
        (void)snprintf(path, sizeof path, "%s/%s", CASES_DIR, entry->d_name);
        run_file(path, &tally);
    }
    (void)closedir(folder); /* the folder was only read, so a failure is harmless */
    return tally;
}

static void renders_recorded_cases_as_jinja2(void **state)
{
    const struct tally tally = run_all();
    (void)state;
    print_message("%zu cases, %zu of them errors, %zu wrong\n", tally.n_cases, tally.n_errors,
                  tally.n_wrong);
    assert_int_equal(tally.n_wrong, 0);
    assert_true(tally.n_cases > 700); /* no file of cases is missing */
    assert_true(tally.n_errors > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(renders_recorded_cases_as_jinja2)};
    /* strftime_now prints local time; the cases were recorded in UTC. */
    return setenv("TZ", "UTC", 1) ? EXIT_FAILURE : cmocka_run_group_tests(tests, NULL, NULL);
}
