/*
 * Division of work: each item is processed once, each thread begins with its own range, and other
 * threads process items of a slow thread.
 */
#include "engine/cpu/cpu_work.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#define N_THREADS 3
#define N_ROWS 1000
#define UNIT_ROWS 16 /* each range is a multiple of this many rows */
#define ITEM_ROWS 48 /* most rows of a work item */

struct work {
    struct backend b;
    struct pass pass;
    struct cpu_thread threads[N_THREADS];
    atomic_size_t n_done[N_ROWS];  /* how often each row was processed */
    atomic_size_t n_all_done;      /* rows that were processed, in all phases */
    atomic_size_t n_wrong;         /* rows that a phase processed not exactly once */
    size_t n_of_thread[N_THREADS]; /* rows that each thread processed */
};

static struct work *work_new(void)
{
    struct work *w = calloc(1, sizeof *w);
    assert_non_null(w);
    w->b.scratch.threads = w->threads;
    w->pass.b = &w->b;
    for (size_t i = 0; i < N_THREADS; i++)
        w->threads[i] = (struct cpu_thread){.pass = &w->pass, .index = i, .n_threads = N_THREADS};
    threads_begin(w->threads, N_THREADS);
    return w;
}

static void one_thread_takes_all_items(void **state)
{
    (void)state;
    struct work *w = work_new();
    struct work_item p = {0};
    const struct work_range own = work_range_of(N_ROWS, UNIT_ROWS, 1, N_THREADS);
    size_t next = own.begin, n_rows = 0, n_jumps = 0;
    while (thread_take_work(&w->threads[1], N_ROWS, UNIT_ROWS, ITEM_ROWS, &p)) {
        if (p.begin != next) { /* only a new range begins somewhere else */
            assert_true(p.begin == p.range.begin);
            n_jumps++;
        }
        assert_true(p.end > p.begin && p.end - p.begin <= ITEM_ROWS && p.end <= p.range.end);
        assert_int_equal(p.begin % UNIT_ROWS, 0);
        n_rows += p.end - p.begin;
        next = p.end;
    }
    assert_int_equal(n_rows, N_ROWS);
    assert_int_equal(n_jumps, 1); /* range 2 begins where range 1 ends; then a jump to range 0 */
    for (size_t i = 0; i < N_THREADS; i++) {
        struct work_item none = {0};
        assert_false(thread_take_work(&w->threads[i], N_ROWS, UNIT_ROWS, ITEM_ROWS, &none));
    }
    free(w);
}

static void threads_start_with_their_own_range(void **state)
{
    (void)state;
    struct work *w = work_new();
    for (size_t i = 0; i < N_THREADS; i++) {
        struct work_item p = {0};
        assert_true(thread_take_work(&w->threads[i], N_ROWS, UNIT_ROWS, ITEM_ROWS, &p));
        assert_int_equal(p.begin, work_range_of(N_ROWS, UNIT_ROWS, i, N_THREADS).begin);
    }
    free(w);
}

static void fewer_rows_than_threads_are_taken_once(void **state)
{
    (void)state;
    struct work *w = work_new();
    size_t n = 0;
    for (size_t i = 0; i < N_THREADS; i++)
        for (struct work_item p = {0}; thread_take_work(&w->threads[i], 2, 1, 8, &p);)
            n += p.end - p.begin;
    assert_int_equal(n, 2);
    free(w);
}

static void a_range_of_one_item_is_not_shared(void **state)
{
    (void)state;
    struct work *w = work_new();
    for (size_t i = N_THREADS; i-- > 0;) {
        struct work_item p = {0};
        assert_true(
            thread_take_work(&w->threads[i], N_THREADS * UNIT_ROWS, UNIT_ROWS, UNIT_ROWS, &p));
        assert_int_equal(p.begin, i * UNIT_ROWS);
        assert_false(
            thread_take_work(&w->threads[i], N_THREADS * UNIT_ROWS, UNIT_ROWS, UNIT_ROWS, &p));
    }
    free(w);
}

#define N_PHASES 50

/* Thread 0 is slow: the others finish all other items of the phase during its first one. Each phase
 * processes every row once. */
static void run_phases(void *ud, size_t index, size_t n_threads)
{
    struct work *w = ud;
    struct cpu_thread *th = &w->threads[index];
    const struct timespec pause = {.tv_nsec = 100000};
    th->n_threads = n_threads;
    for (size_t phase = 0; phase < N_PHASES; phase++) {
        for (struct work_item p = {0}; thread_take_work(th, N_ROWS, UNIT_ROWS, ITEM_ROWS, &p);) {
            const size_t n_rows = p.end - p.begin;
            while (index == 0 && n_threads > 1 &&
                   atomic_load(&w->n_all_done) < (phase + 1) * N_ROWS - n_rows)
                (void)nanosleep(&pause, NULL);
            for (size_t i = p.begin; i < p.end; i++)
                atomic_fetch_add(&w->n_done[i], 1);
            atomic_fetch_add(&w->n_all_done, n_rows);
            w->n_of_thread[index] += n_rows;
        }
        thread_sync(th);
        for (size_t i = index; i < N_ROWS; i += n_threads)
            if (atomic_load(&w->n_done[i]) != phase + 1)
                atomic_fetch_add(&w->n_wrong, 1);
        thread_sync(th);
    }
}

static void items_of_a_slow_thread_are_taken(void **state)
{
    (void)state;
    struct work *w = work_new();
    team_run(team_start(N_THREADS), N_THREADS, run_phases, w);
    assert_int_equal(atomic_load(&w->n_wrong), 0);
    const size_t n_threads = w->threads[0].n_threads;
    size_t n = 0;
    for (size_t i = 0; i < n_threads; i++)
        n += w->n_of_thread[i];
    assert_int_equal(n, (size_t)N_ROWS * N_PHASES);
    if (n_threads > 1)
        assert_true(w->n_of_thread[0] <= (size_t)ITEM_ROWS * N_PHASES); /* of N_ROWS * N_PHASES */
    free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_thread_takes_all_items),
        cmocka_unit_test(threads_start_with_their_own_range),
        cmocka_unit_test(fewer_rows_than_threads_are_taken_once),
        cmocka_unit_test(a_range_of_one_item_is_not_shared),
        cmocka_unit_test(items_of_a_slow_thread_are_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
