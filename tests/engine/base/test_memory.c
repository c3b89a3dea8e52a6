/*
 * Memory and sizes: overflow is refused, blocks are aligned and zeroed, growth keeps the contents.
 */
#include "engine/base/memory.h"
#include "engine/base/size.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

static void overflowing_products_are_refused(void **state)
{
    (void)state;
    size_t out = 5;
    assert_false(size_mul(&out, SIZE_MAX, 2));
    assert_false(size_mul3(&out, (size_t)1 << 32, (size_t)1 << 31, 4));
    assert_false(size_add(&out, SIZE_MAX, 1));
    assert_int_equal(out, 5);
    assert_true(size_mul3(&out, 3, 4, 5));
    assert_int_equal(out, 60);
    assert_null(mem_alloc(SIZE_MAX, 2));
    assert_null(mem_alloc(SIZE_MAX - 8, 1));
}

static void blocks_are_aligned_and_zeroed(void **state)
{
    (void)state;
    for (size_t n = 0; n < 300; n += 7) {
        unsigned char *p = mem_alloc(n, 1);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % MEM_ALIGN, 0);
        for (size_t i = 0; i < n; i++)
            assert_int_equal(p[i], 0);
        memset(p, 0xaa, n);
        mem_free(p);
    }
}

static void growth_keeps_contents_and_zeroes_the_rest(void **state)
{
    (void)state;
    int *items = NULL;
    size_t cap = 0;
    for (size_t n = 1; n <= 1000; n++) {
        assert_true(mem_grow(&items, &cap, n, sizeof(*items)));
        assert_true(cap >= n);
        assert_int_equal(items[n - 1], 0);
        items[n - 1] = (int)n;
    }
    for (size_t i = 0; i < 1000; i++)
        assert_int_equal(items[i], (int)i + 1);
    const size_t before = cap;
    assert_false(mem_grow(&items, &cap, SIZE_MAX / 2, sizeof(*items)));
    assert_int_equal(cap, before);
    assert_int_equal(items[999], 1000);
    mem_free(items);
}

static void mapped_pages_cost_nothing_until_touched(void **state)
{
    (void)state;
    struct mem_map map = {0};
    const size_t before = mem_resident_bytes();
    if (before == 0)
        skip(); /* no /proc */
    assert_true(mem_map_open(&map, (size_t)1 << 30, MEM_PAGES_NORMAL));
    unsigned char *p = map.ptr;
    assert_int_equal(p[12345678], 0);
    p[0] = 1;
    assert_true(mem_resident_bytes() < before + ((size_t)64 << 20));
    mem_map_close(&map);
    mem_map_close(&map);
    assert_false(mem_map_open(&map, SIZE_MAX, MEM_PAGES_HUGE));
    assert_false(mem_map_open(&map, 0, MEM_PAGES_HUGE));
}

/* Written pages count as anonymous memory, pages read from a file as file memory. */
static void anonymous_and_file_pages_are_distinct(void **state)
{
    (void)state;
    const size_t n_bytes = (size_t)64 << 20, slack = (size_t)8 << 20;
    struct mem_map map = {0};
    const size_t anon = mem_anon_bytes(), file = mem_file_bytes();
    if (anon == 0)
        skip(); /* no /proc */
    assert_true(mem_map_open(&map, n_bytes, MEM_PAGES_NORMAL));
    memset(map.ptr, 1, n_bytes);
    assert_true(mem_anon_bytes() + slack > anon + n_bytes);
    assert_true(mem_file_bytes() < file + slack);
    assert_true(mem_resident_bytes() + slack > mem_anon_bytes() + mem_file_bytes());
    mem_map_close(&map);
    assert_true(mem_anon_bytes() < anon + n_bytes);
    assert_true(mem_peak_bytes() + slack > anon + n_bytes);
}

static void free_memory_obeys_the_address_limit(void **state)
{
    (void)state;
    const rlim_t slack = (rlim_t)64 << 20;
    struct rlimit before, less;
    unsigned long long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f)
        skip(); /* no /proc */
    assert_int_equal(fscanf(f, "%llu", &pages), 1);
    (void)fclose(f); /* the file was only read */
    assert_true(mem_free_bytes() > 0);
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    less = before;
    less.rlim_cur = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + slack;
    assert_int_equal(setrlimit(RLIMIT_AS, &less), 0);
    const size_t n = mem_free_bytes();
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    assert_true(n <= slack);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(overflowing_products_are_refused),
        cmocka_unit_test(blocks_are_aligned_and_zeroed),
        cmocka_unit_test(growth_keeps_contents_and_zeroes_the_rest),
        cmocka_unit_test(mapped_pages_cost_nothing_until_touched),
        cmocka_unit_test(anonymous_and_file_pages_are_distinct),
        cmocka_unit_test(free_memory_obeys_the_address_limit),
    };
    return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
