/*
 * Pinned threads. While a model is open, each of its threads may run on one CPU only, and no two
 * threads have the same CPU. Afterwards each thread has its previous mask. Needs two CPUs.
 */
#define _GNU_SOURCE /* sched_getaffinity */
#include "engine/cpu/cpu_team.h"
#include "engine/cpu/cpu_threads.h"
#include "tests/engine/test_engine_kit.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define N_THREADS 2
#define MAX_CPUS 8192 /* the most that a Linux kernel for x86 can be built for */

struct masks {
    cpu_set_t of[N_THREADS];
    bool is_read[N_THREADS];
};

static void read_mask(void *ud, size_t index, size_t n_threads)
{
    struct masks *m = ud;
    (void)n_threads;
    m->is_read[index] = sched_getaffinity(0, sizeof m->of[index], &m->of[index]) == 0;
}

static struct masks masks_now(void)
{
    struct masks m = {0};
    team_run(N_THREADS, N_THREADS, read_mask, &m);
    for (size_t i = 0; i < N_THREADS; i++)
        assert_true(m.is_read[i]);
    return m;
}

static void each_thread_stays_on_a_different_cpu(void **state)
{
    (void)state;
    const struct masks before = masks_now();
    const struct synth_spec spec = synth_preset("tiny");
    const struct bn_model_config cfg = {.device = "cpu", .n_threads = N_THREADS, .pin = true};
    struct kit kit;
    kit_open(&kit, &spec, &cfg);
    const struct masks during = masks_now();
    kit_close(&kit);
    const struct masks after = masks_now();
    cpu_set_t both;
    for (size_t i = 0; i < N_THREADS; i++) {
        assert_int_equal(CPU_COUNT(&during.of[i]), 1);
        CPU_AND(&both, &during.of[i], &before.of[i]);
        assert_int_equal(CPU_COUNT(&both), 1);
        assert_true(CPU_EQUAL(&after.of[i], &before.of[i]));
    }
    CPU_AND(&both, &during.of[0], &during.of[1]);
    assert_int_equal(CPU_COUNT(&both), 0);
}

static void threads_are_not_pinned_by_default(void **state)
{
    (void)state;
    const struct masks before = masks_now();
    const struct synth_spec spec = synth_preset("tiny");
    struct kit kit;
    kit_open(&kit, &spec, NULL);
    const struct masks during = masks_now();
    kit_close(&kit);
    for (size_t i = 0; i < N_THREADS; i++)
        assert_true(CPU_EQUAL(&during.of[i], &before.of[i]));
}

static void more_threads_than_cpus_are_refused(void **state)
{
    (void)state;
    const struct masks before = masks_now();
    struct team_pins *pins = NULL;
    struct bn_error err;
    assert_false(team_pin(MAX_CPUS + 1, &pins, &err));
    assert_null(pins);
    assert_int_equal(err.code, BN_EARG);
    assert_non_null(strstr(err.text, "cannot be pinned"));
    const struct masks after = masks_now();
    for (size_t i = 0; i < N_THREADS; i++)
        assert_true(CPU_EQUAL(&after.of[i], &before.of[i]));
}

/* First one CPU of each core in ascending order, then the others in ascending order. */
static void cores_come_before_their_siblings(void **state)
{
    (void)state;
    size_t cpus[MAX_CPUS], n_cores;
    const size_t n = cpu_list_allowed(cpus, MAX_CPUS, &n_cores);
    assert_in_range(n_cores, 1, n);
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < i; j++)
            assert_int_not_equal(cpus[i], cpus[j]);
        if (i > 0 && i != n_cores)
            assert_true(cpus[i] > cpus[i - 1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_thread_stays_on_a_different_cpu),
        cmocka_unit_test(threads_are_not_pinned_by_default),
        cmocka_unit_test(more_threads_than_cpus_are_refused),
        cmocka_unit_test(cores_come_before_their_siblings),
    };
    size_t n_cores;
    if (cpu_list_allowed(NULL, 0, &n_cores) < N_THREADS || team_start(N_THREADS) < N_THREADS)
        return 77;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
