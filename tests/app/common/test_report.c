/*
 * Exit codes for scripts, and any bytes printed on one safe line.
 */
#include "app/common/report.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void exit_codes_distinguish_values_models_files(void **state)
{
    static const struct {
        enum bn_errcode code;
        int load, run;
    } rows[] = {
        {BN_EARG, 2, 2},   {BN_EFORMAT, 3, 1},  {BN_EUNSUPPORTED, 3, 1},   {BN_EIO, 3, 5},
        {BN_ENOMEM, 3, 1}, {BN_ECONTEXT, 4, 4}, {BN_ECANCELLED, 130, 130}, {BN_EDEVICE, 3, 1},
        {BN_ELOST, 3, 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct bn_error err = {.code = rows[i].code};
        assert_int_equal(report_code(STAGE_LOAD, &err), rows[i].load);
        assert_int_equal(report_code(STAGE_RUN, &err), rows[i].run);
    }
}

static void any_bytes_become_one_safe_line(void **state)
{
    static const char bytes[] = "a\033[31m\nb\tc \xff \xc2\x9b \xe2\x80\xae d\0e";
    static const char expected[] = "a\xef\xbf\xbd[31m b c \xef\xbf\xbd \xef\xbf\xbd \xef\xbf\xbd d"
                                   "\xef\xbf\xbd"
                                   "e";
    char out[200] = "";
    (void)state;
    FILE *f = fmemopen(out, sizeof(out), "w");
    assert_non_null(f);
    report_safe(f, (struct bn_str){bytes, sizeof(bytes) - 1});
    fclose(f);
    assert_string_equal(out, expected);
}

static void the_version_is_three_numbers(void **state)
{
    int major, minor, patch;
    char rest;
    (void)state;
    assert_int_equal(sscanf(report_version(), "%d.%d.%d%c", &major, &minor, &patch, &rest), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exit_codes_distinguish_values_models_files),
        cmocka_unit_test(any_bytes_become_one_safe_line),
        cmocka_unit_test(the_version_is_three_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
