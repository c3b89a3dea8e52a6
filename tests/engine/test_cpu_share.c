/*
 * Pieces of work: each is taken once, a lane's own first, and what a slow lane leaves is taken by
 * the others.
 */
#include "engine/cpu/cpu_share.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#define N_LANES 3
#define N_THINGS 1000
#define UNIT 16
#define SIZE 48

struct work {
    struct backend b;
    struct pass pass;
    struct lane lanes[N_LANES];
    atomic_size_t n_done[N_THINGS];
    atomic_size_t n_wrong;
    size_t n_of_lane[N_LANES];
};

static struct work *work_new(void)
{
    struct work *w = calloc(1, sizeof *w);
    assert_non_null(w);
    w->b.scratch.lanes = w->lanes;
    w->pass.b = &w->b;
    for (size_t i = 0; i < N_LANES; i++)
        w->lanes[i] = (struct lane){.pass = &w->pass, .index = i, .n_lanes = N_LANES};
    lanes_begin(w->lanes, N_LANES);
    return w;
}

static void one_lane_does_it_all(void **state)
{
    (void)state;
    struct work *w = work_new();
    struct piece p = {0};
    const struct share own = share_of(N_THINGS, UNIT, 1, N_LANES);
    size_t next = own.begin, n = 0, n_shares = 1;
    while (lane_take(&w->lanes[1], N_THINGS, UNIT, SIZE, &p)) {
        if (p.begin != next) { /* a share is done */
            assert_true(p.begin == p.of.begin);
            n_shares++;
        }
        assert_true(p.end > p.begin && p.end - p.begin <= SIZE && p.end <= p.of.end);
        assert_int_equal(p.begin % UNIT, 0);
        n += p.end - p.begin;
        next = p.end;
    }
    assert_int_equal(n, N_THINGS);
    assert_int_equal(n_shares, 2); /* its own and the one behind it, in a row; then the first */
    for (size_t i = 0; i < N_LANES; i++) {
        struct piece none = {0};
        assert_false(lane_take(&w->lanes[i], N_THINGS, UNIT, SIZE, &none));
    }
    free(w);
}

static void lanes_begin_with_their_own(void **state)
{
    (void)state;
    struct work *w = work_new();
    for (size_t i = 0; i < N_LANES; i++) {
        struct piece p = {0};
        assert_true(lane_take(&w->lanes[i], N_THINGS, UNIT, SIZE, &p));
        assert_int_equal(p.begin, share_of(N_THINGS, UNIT, i, N_LANES).begin);
    }
    free(w);
}

static void fewer_things_than_lanes(void **state)
{
    (void)state;
    struct work *w = work_new();
    size_t n = 0;
    for (size_t i = 0; i < N_LANES; i++)
        for (struct piece p = {0}; lane_take(&w->lanes[i], 2, 1, 8, &p);)
            n += p.end - p.begin;
    assert_int_equal(n, 2);
    free(w);
}

static void a_share_of_one_piece_is_left_alone(void **state)
{
    (void)state;
    struct work *w = work_new();
    for (size_t i = N_LANES; i-- > 0;) {
        struct piece p = {0};
        assert_true(lane_take(&w->lanes[i], N_LANES * UNIT, UNIT, UNIT, &p));
        assert_int_equal(p.begin, i * UNIT);
        assert_false(lane_take(&w->lanes[i], N_LANES * UNIT, UNIT, UNIT, &p));
    }
    free(w);
}

#define N_PHASES 50

/* Lane 0 is slow. In each phase everything is done once more. */
static void run_phases(void *ud, size_t index, size_t n_lanes)
{
    struct work *w = ud;
    struct lane *l = &w->lanes[index];
    const struct timespec pause = {.tv_nsec = 100000};
    l->n_lanes = n_lanes;
    for (size_t phase = 0; phase < N_PHASES; phase++) {
        for (struct piece p = {0}; lane_take(l, N_THINGS, UNIT, SIZE, &p);) {
            if (index == 0)
                (void)nanosleep(&pause, NULL);
            for (size_t i = p.begin; i < p.end; i++)
                atomic_fetch_add(&w->n_done[i], 1);
            w->n_of_lane[index] += p.end - p.begin;
        }
        lane_sync(l);
        for (size_t i = index; i < N_THINGS; i += n_lanes)
            if (atomic_load(&w->n_done[i]) != phase + 1)
                atomic_fetch_add(&w->n_wrong, 1);
        lane_sync(l);
    }
}

static void what_a_slow_lane_leaves_is_taken(void **state)
{
    (void)state;
    struct work *w = work_new();
    team_run(team_size(N_LANES), N_LANES, run_phases, w);
    assert_int_equal(atomic_load(&w->n_wrong), 0);
    const size_t n_lanes = w->lanes[0].n_lanes;
    size_t n = 0;
    for (size_t i = 0; i < n_lanes; i++)
        n += w->n_of_lane[i];
    assert_int_equal(n, (size_t)N_THINGS * N_PHASES);
    if (n_lanes > 1)
        assert_true(w->n_of_lane[0] < n / n_lanes);
    free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_lane_does_it_all),
        cmocka_unit_test(lanes_begin_with_their_own),
        cmocka_unit_test(fewer_things_than_lanes),
        cmocka_unit_test(a_share_of_one_piece_is_left_alone),
        cmocka_unit_test(what_a_slow_lane_leaves_is_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
