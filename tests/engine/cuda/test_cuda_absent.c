/*
 * The backend on a machine without a driver library: the probe fails with one line. If there is a
 * driver, the test is skipped.
 */
#include "engine/cuda/cuda_backend.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void a_missing_driver_is_one_line(void **state)
{
    (void)state;
    const struct backend_config cfg = {0};
    char text[160], again[160];
    assert_false(cuda_backend_ops.probe(&cfg, text, sizeof text));
    assert_string_equal(text, "there is no NVIDIA driver here (libcuda.so.1)");
    assert_false(cuda_backend_ops.probe(&cfg, again, sizeof again));
    assert_string_equal(text, again);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_missing_driver_is_one_line)};
    const struct backend_config cfg = {0};
    char text[160];
    if (cuda_backend_ops.probe(&cfg, text, sizeof text) || !strstr(text, "there is no NVIDIA")) {
        printf("skipped: this machine has a driver: %s\n", text);
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
