/*
 * Rings: their size, the positions that they hold, and the lengths to which a sequence can be cut.
 * docs/architecture.md, "Saved states", uses the same numbers.
 */
#include "engine/layout/window_ring.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define WINDOW 128
#define N_UBATCH 512

static struct window_ring ring_of(size_t n_ctx_train)
{
    static struct layer layers[2]; /* the second one has no window */
    layers[0].traits.n_visible_keys = WINDOW;
    const struct model m = {.hp = {.n_layers = 2, .n_ctx_train = n_ctx_train}, .layers = layers};
    return window_ring_of(&m, N_UBATCH);
}

static void a_ring_has_room_for_window_and_micro_batch(void **state)
{
    (void)state;
    const struct window_ring r = ring_of(8192);
    assert_int_equal(r.n_layers, 1);
    assert_int_equal(r.n_before, WINDOW - 1);
    assert_int_equal(r.n_blocks, 10); /* 127 + 512 positions, rounded up to 640 */
    assert_int_equal(window_state_blocks(&r), 2);
    assert_int_equal(window_ring_blocks(&r, 100), 2);
    assert_int_equal(window_ring_blocks(&r, 8192), 10);
    assert_int_equal(ring_of(640).n_blocks, 0); /* not smaller than the whole cache */
}

static void a_sequence_can_be_cut_while_the_window_is_held(void **state)
{
    (void)state;
    const struct window_ring r = ring_of(8192);
    struct ring_contents c = {.n_blocks = r.n_blocks};
    ring_begin_write(&c, 640);
    for (size_t n_keep = 0; n_keep <= 640; n_keep++)
        assert_int_equal(ring_reachable(&c, &r, 640, n_keep), n_keep);
    ring_begin_write(&c, 2000);
    assert_int_equal(c.first, 1360);
    assert_int_equal(ring_reachable(&c, &r, 2000, 1999), 1999);
    assert_int_equal(ring_reachable(&c, &r, 2000, 1487), 1487);
    assert_int_equal(ring_reachable(&c, &r, 2000, 1486), 0);
    assert_int_equal(ring_reachable(&c, &r, 2000, 0), 0);
}

static void a_failed_pass_leaves_the_present_length(void **state)
{
    (void)state;
    const struct window_ring r = ring_of(8192);
    struct ring_contents c = {.n_blocks = r.n_blocks};
    ring_begin_write(&c, 2000);
    ring_begin_write(&c, 2000 + N_UBATCH); /* this pass fails */
    assert_true(c.first <= window_begin(&r, 2000));
    assert_int_equal(ring_reachable(&c, &r, 2000, 2000), 2000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ring_has_room_for_window_and_micro_batch),
        cmocka_unit_test(a_sequence_can_be_cut_while_the_window_is_held),
        cmocka_unit_test(a_failed_pass_leaves_the_present_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
