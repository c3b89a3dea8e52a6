/*
 * Typed values of metadata: accepted kinds, and values that do not fit. The tests call the public
 * functions of bn_file where these exist.
 */
#include "engine/base/fp16.h"
#include "engine/base/memory.h"
#include "engine/file_gguf.h"
#include "tests/support/gguf_write.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

struct fixture {
    struct gguf_buffer bytes;
    struct bn_file *file;
    const struct gguf *g;
};

static void put_scalars(struct gguf_writer *w)
{
    static const uint8_t ones[8] = {255, 255, 255, 255, 255, 255, 255, 255};
    static const uint8_t half[8] = {0, 0, 0, 0, 0, 0, 0xe0, 0x3f}; /* 0.5 as F64 */
    gguf_put_raw(w, "u8", GGUF_U8, ones);
    gguf_put_raw(w, "i8", GGUF_I8, ones);
    gguf_put_raw(w, "u16", GGUF_U16, ones);
    gguf_put_raw(w, "i16", GGUF_I16, ones);
    gguf_put_u32(w, "u32", UINT32_MAX);
    gguf_put_raw(w, "i32", GGUF_I32, ones);
    gguf_put_f32(w, "f32", -1.5f);
    gguf_put_bool(w, "yes", true);
    gguf_put_bool(w, "no", false);
    gguf_put_str(w, "str", (struct bn_str){"a\0b", 3});
    gguf_put_raw(w, "u64", GGUF_U64, ones);
    gguf_put_raw(w, "i64", GGUF_I64, ones);
    gguf_put_raw(w, "f64", GGUF_F64, half);
}

static void put_arrays(struct gguf_writer *w)
{
    static const float reals[] = {0.0f, -2.25f, 1e30f};
    static const int32_t ints[] = {-1, 0, 7};
    static const struct bn_str strs[] = {{"", 0}, {"two", 3}, {"\xff\0", 2}};
    static const uint8_t wide[16] = {1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 128, 0, 0, 0, 0};
    gguf_put_array(w, "reals", GGUF_F32, reals, 3);
    gguf_put_array(w, "ints", GGUF_I32, ints, 3);
    gguf_put_array(w, "wide", GGUF_U64, wide, 2); /* 1, 2^31 */
    gguf_put_array(w, "none", GGUF_I32, ints, 0);
    gguf_put_strs(w, "strs", strs, 3);
}

static int open_fixture(void **state)
{
    struct bn_error err;
    struct gguf_writer *w = NULL;
    struct fixture *f = mem_alloc(1, sizeof(*f));
    const struct gguf_sink sink = gguf_sink_memory(&f->bytes);
    if (!gguf_writer_open(&w, &err))
        return -1;
    put_scalars(w);
    put_arrays(w);
    const bool ok = gguf_write_header(w, &sink, &err) &&
                    bn_file_open_memory(f->bytes.bytes, f->bytes.n_bytes, &f->file, &err);
    gguf_writer_close(w);
    f->g = ok ? bn_file_gguf(f->file) : NULL;
    *state = f;
    return ok ? 0 : -1;
}

static int close_fixture(void **state)
{
    struct fixture *f = *state;
    bn_file_close(f->file);
    mem_free(f->bytes.bytes);
    mem_free(f);
    return 0;
}

static void every_integer_from_0_is_a_u64(void **state)
{
    const struct fixture *f = *state;
    uint64_t v = 0;
    assert_true(bn_file_get_u64(f->file, "u8", &v) && v == 255);
    assert_true(bn_file_get_u64(f->file, "u16", &v) && v == 65535);
    assert_true(bn_file_get_u64(f->file, "u32", &v) && v == UINT32_MAX);
    assert_true(bn_file_get_u64(f->file, "u64", &v) && v == UINT64_MAX);
    v = 42;
    static const char *const not_u64[] = {"i8",  "i16", "i32", "i64",  "f32",
                                          "f64", "yes", "str", "ints", "absent"};
    for (size_t i = 0; i < sizeof(not_u64) / sizeof(not_u64[0]); i++)
        assert_false(bn_file_get_u64(f->file, not_u64[i], &v));
    assert_true(v == 42);
}

static void any_number_is_an_f64(void **state)
{
    const struct fixture *f = *state;
    double v = 0.0;
    assert_true(bn_file_get_f64(f->file, "f32", &v) && v == -1.5);
    assert_true(bn_file_get_f64(f->file, "f64", &v) && v == 0.5);
    assert_true(bn_file_get_f64(f->file, "i8", &v) && v == -1.0);
    assert_true(bn_file_get_f64(f->file, "i64", &v) && v == -1.0);
    assert_true(bn_file_get_f64(f->file, "u16", &v) && v == 65535.0);
    assert_false(bn_file_get_f64(f->file, "str", &v));
    assert_false(bn_file_get_f64(f->file, "yes", &v));
    assert_false(bn_file_get_f64(f->file, "reals", &v));
}

static void strings_and_bools_keep_their_kind(void **state)
{
    const struct fixture *f = *state;
    struct bn_str s;
    bool b = false;
    assert_true(bn_file_get_str(f->file, "str", &s));
    assert_true(bn_str_equal(s, (struct bn_str){"a\0b", 3}));
    assert_false(bn_file_get_str(f->file, "u32", &s));
    assert_true(bn_file_get_bool(f->file, "yes", &b) && b);
    assert_true(bn_file_get_bool(f->file, "no", &b) && !b);
    assert_false(bn_file_get_bool(f->file, "u8", &b));
    assert_true(bn_file_has(f->file, "no"));
    assert_false(bn_file_has(f->file, "n"));
}

static void arrays_are_converted_to_the_requested_kind(void **state)
{
    const struct fixture *f = *state;
    float reals[3];
    int32_t ints[3];
    size_t n = 9;
    assert_true(bn_file_array_f32(f->file, "reals", reals, 3));
    assert_true(reals[1] == -2.25f && reals[2] == 1e30f);
    assert_true(bn_file_array_f32(f->file, "ints", reals, 3));
    assert_true(reals[0] == -1.0f && reals[2] == 7.0f);
    assert_true(bn_file_array_i32(f->file, "ints", ints, 3));
    assert_true(ints[0] == -1 && ints[2] == 7);
    assert_false(bn_file_array_i32(f->file, "ints", ints, 4)); /* longer than the array */
    assert_false(bn_file_array_i32(f->file, "reals", ints, 3));
    assert_true(bn_file_array_i32(f->file, "wide", ints, 1));
    assert_false(bn_file_array_i32(f->file, "wide", ints, 2)); /* 2^31 does not fit */
    assert_false(bn_file_array_f32(f->file, "strs", reals, 1));
    assert_true(bn_file_get_array(f->file, "none", &n) && n == 0);
    assert_false(bn_file_get_array(f->file, "u32", &n));
}

static void strings_of_an_array_are_walked_in_order(void **state)
{
    const struct fixture *f = *state;
    struct bn_str_walk walk;
    struct bn_str s;
    size_t n = 0;
    assert_true(bn_file_walk_strs(f->file, "strs", &walk, &n));
    assert_int_equal(n, 3);
    assert_true(bn_str_walk_next(&walk, &s) && s.n_bytes == 0);
    assert_true(bn_str_walk_next(&walk, &s) && bn_str_is(s, "two"));
    assert_true(bn_str_walk_next(&walk, &s) && bn_str_equal(s, (struct bn_str){"\xff\0", 2}));
    assert_false(bn_str_walk_next(&walk, &s));
    assert_false(bn_file_walk_strs(f->file, "ints", &walk, &n));
}

static void items_are_read_by_index(void **state)
{
    const struct fixture *f = *state;
    const struct gguf_kv *ints = gguf_find_kv(f->g, "ints"), *u32 = gguf_find_kv(f->g, "u32");
    int64_t i;
    uint64_t u;
    double d;
    assert_true(gguf_item_i64(ints, 0, &i) && i == -1);
    assert_false(gguf_item_u64(ints, 0, &u));
    assert_true(gguf_item_f64(ints, 2, &d) && d == 7.0);
    assert_false(gguf_item_i64(ints, 3, &i));
    assert_false(gguf_item_i64(ints, UINT64_MAX, &i));
    assert_true(gguf_item_u64(u32, 0, &u) && u == UINT32_MAX);
    assert_false(gguf_item_u64(u32, 1, &u));
    assert_false(gguf_item_i64(gguf_find_kv(f->g, "u64"), 0, &i)); /* does not fit */
}

static void errors_of_opening_name_the_reason(void **state)
{
    (void)state;
    struct bn_file *file = NULL;
    struct bn_error err;
    assert_false(bn_file_open("/no/such/file", &file, &err));
    assert_int_equal(err.code, BN_EIO);
    assert_non_null(strstr(err.text, "/no/such/file"));
    assert_false(bn_file_open("/", &file, &err));
    assert_int_equal(err.code, BN_EIO);
    assert_non_null(strstr(err.text, "directory"));
    assert_false(bn_file_open("/dev/null", &file, &err));
    assert_int_equal(err.code, BN_EIO);
    assert_null(file);
}

static void a_file_on_disk_is_the_same_as_in_memory(void **state)
{
    const struct fixture *f = *state;
    char path[] = "/tmp/test_gguf_query.XXXXXX";
    const int fd = mkstemp(path);
    struct bn_file *file = NULL;
    struct bn_error err;
    assert_true(fd >= 0);
    assert_false(bn_file_open(path, &file, &err));
    assert_int_equal(err.code, BN_EFORMAT);
    assert_non_null(strstr(err.text, "is empty"));
    assert_true(write(fd, f->bytes.bytes, f->bytes.n_bytes) == (ssize_t)f->bytes.n_bytes);
    assert_true(bn_file_open(path, &file, &err));
    assert_string_equal(bn_file_path(file), path);
    assert_int_equal(bn_file_bytes(file), f->bytes.n_bytes);
    assert_int_equal(bn_file_gguf(file)->n_kvs, f->g->n_kvs);
    assert_string_equal(bn_file_path(f->file), "");
    bn_file_close(file);
    assert_true(ftruncate(fd, (off_t)f->bytes.n_bytes - 33) == 0);
    assert_false(bn_file_open(path, &file, &err));
    assert_non_null(strstr(err.text, path)); /* the message names the file */
    assert_true(close(fd) == 0);
    assert_true(unlink(path) == 0);
}

static void a_part_of_a_split_model_in_memory_is_refused(void **state)
{
    (void)state;
    struct gguf_buffer b = {0};
    const struct gguf_sink sink = gguf_sink_memory(&b);
    struct gguf_writer *w = NULL;
    struct bn_file *file = NULL;
    struct bn_error err;
    static const uint8_t zero[2] = {0, 0}, three[2] = {3, 0};
    assert_true(gguf_writer_open(&w, &err));
    gguf_put_raw(w, "split.no", GGUF_U16, zero);
    gguf_put_raw(w, "split.count", GGUF_U16, three);
    assert_true(gguf_write_header(w, &sink, &err));
    assert_false(bn_file_open_memory(b.bytes, b.n_bytes, &file, &err));
    assert_int_equal(err.code, BN_EUNSUPPORTED);
    assert_non_null(strstr(err.text, "part 1 of a split model cannot be opened alone"));
    gguf_writer_close(w);
    mem_free(b.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_integer_from_0_is_a_u64),
        cmocka_unit_test(any_number_is_an_f64),
        cmocka_unit_test(strings_and_bools_keep_their_kind),
        cmocka_unit_test(arrays_are_converted_to_the_requested_kind),
        cmocka_unit_test(strings_of_an_array_are_walked_in_order),
        cmocka_unit_test(items_are_read_by_index),
        cmocka_unit_test(errors_of_opening_name_the_reason),
        cmocka_unit_test(a_file_on_disk_is_the_same_as_in_memory),
        cmocka_unit_test(a_part_of_a_split_model_in_memory_is_refused),
    };
    return cmocka_run_group_tests(tests, open_fixture, close_fixture);
}
