/*
 * The index of token texts: classes, duplicates, and colliding texts.
 */
#include "tokenizer/vocab/text_index.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static uint32_t append(struct text_index *x, const char *text)
{
    memcpy(text_index_buffer(x), text, strlen(text));
    return text_index_append(x, strlen(text));
}

static void finds_by_text_and_class(void **state)
{
    (void)state;
    struct text_index x;
    struct bn_error err;
    assert_true(text_index_init(&x, 4, 12, &err));
    assert_true(text_index_add(&x, append(&x, "one"), 0));
    assert_true(text_index_add(&x, append(&x, "one"), 1));
    assert_true(text_index_add(&x, append(&x, ""), 0));
    assert_true(text_index_add(&x, append(&x, "one"), 0)); /* the first of equal strings stays */
    assert_int_equal(text_index_find(&x, bn_str_of("one"), 0), 0);
    assert_int_equal(text_index_find(&x, bn_str_of("one"), 1), 1);
    assert_int_equal(text_index_find(&x, bn_str_of(""), 0), 2);
    assert_int_equal(text_index_find(&x, bn_str_of(""), 1), UINT32_MAX);
    assert_int_equal(text_index_find(&x, bn_str_of("on"), 0), UINT32_MAX);
    assert_true(bn_str_is(text_index_get(&x, 3), "one"));
    text_index_finish(&x);
}

static void probe_and_resolve_equal_find(void **state)
{
    (void)state;
    struct text_index x;
    struct bn_error err;
    char text[16];
    assert_true(text_index_init(&x, 1000, 16000, &err));
    for (int i = 0; i < 1000; i++) {
        (void)snprintf(text, sizeof(text), "token %d", i * 7);
        assert_true(text_index_add(&x, append(&x, text), 2));
    }
    for (int i = 0; i < 7000; i++) {
        struct text_probe probe;
        (void)snprintf(text, sizeof(text), "token %d", i);
        text_index_probe(&x, bn_str_of(text), 2, &probe);
        assert_int_equal(text_index_resolve(&x, &probe, 2), i % 7 ? UINT32_MAX : (uint32_t)i / 7);
        assert_int_equal(text_index_find(&x, bn_str_of(text), 2),
                         i % 7 ? UINT32_MAX : (uint32_t)i / 7);
    }
    text_index_finish(&x);
}

static void colliding_texts_are_refused(void **state)
{
    (void)state;
    struct text_index x;
    struct bn_error err;
    char text[16];
    size_t n_added = 0;
    assert_true(text_index_init(&x, 1024, 16384, &err));
    for (unsigned i = 0; n_added <= TEXT_PROBES_MAX; i++) {
        (void)snprintf(text, sizeof(text), "%u", i);
        if ((text_hash(text, strlen(text), 0) & (x.n_slots - 1)) != 5)
            continue;
        const bool added = text_index_add(&x, append(&x, text), 0);
        assert_int_equal(added, n_added < TEXT_PROBES_MAX);
        n_added++;
    }
    assert_int_equal(text_index_find(&x, bn_str_of(text), 0), UINT32_MAX);
    text_index_finish(&x);
}

static void refuses_too_many_strings(void **state)
{
    (void)state;
    struct text_index x;
    struct bn_error err;
    assert_false(text_index_init(&x, 1, (size_t)UINT32_MAX + 1, &err));
    assert_int_equal(err.code, BN_EFORMAT);
    assert_false(text_index_init(&x, (size_t)INT32_MAX + 1, 1, &err));
    assert_int_equal(err.code, BN_EFORMAT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_by_text_and_class),
        cmocka_unit_test(probe_and_resolve_equal_find),
        cmocka_unit_test(colliding_texts_are_refused),
        cmocka_unit_test(refuses_too_many_strings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
