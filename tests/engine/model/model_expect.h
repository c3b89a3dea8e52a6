/*
 * Shared by the tests that change the bytes of a synthetic model.
 */
#ifndef TESTS_ENGINE_MODEL_MODEL_EXPECT_H
#define TESTS_ENGINE_MODEL_MODEL_EXPECT_H

#include "tests/support/synth.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* The changed file must be refused with one line that contains `words`. Closes the model. */
static inline void expect_refused(struct synth_model *m, enum bn_errcode code, const char *words)
{
    const struct model_config cfg = {0};
    struct bn_error err = {0};
    if (synth_reopen(m, &cfg, &err))
        fail_msg("accepted, without a word about '%s'", words);
    if (!strstr(err.text, words) || strchr(err.text, '\n'))
        fail_msg("'%s' does not say '%s' in one line", err.text, words);
    assert_int_equal(err.code, code);
    synth_close(m);
}

#endif
