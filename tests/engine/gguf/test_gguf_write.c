/*
 * The GGUF writer: the parser reads its files, and tensor positions and padding are right. Too much
 * or too little data is an error.
 */
#include "engine/base/memory.h"
#include "engine/gguf/gguf.h"
#include "tests/support/gguf_write.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { ID_F32 = 0, ID_F16 = 1 }; /* the numbers of tensor types in files */

static void written_tensors_are_read_back(void **state)
{
    (void)state;
    struct gguf_writer *w = NULL;
    struct gguf_buffer b = {0};
    const struct gguf_sink sink = gguf_sink_memory(&b);
    struct bn_error err;
    const uint64_t dims_a[2] = {3, 2}, dims_b[1] = {5};
    const char a[12] = "abcdefghijk", second[20] = "0123456789012345678";
    assert_true(gguf_writer_open(&w, &err));
    gguf_put_u32(w, "k", 1);
    gguf_put_tensor(w, "a", ID_F16, 2, dims_a, sizeof(a));
    gguf_put_tensor(w, "b", ID_F32, 1, dims_b, sizeof(second));
    assert_true(gguf_write_header(w, &sink, &err));
    assert_int_equal(b.n_bytes % 32, 0);
    assert_true(gguf_write_data(w, &sink, a, 5, &err)); /* in pieces */
    assert_true(gguf_write_data(w, &sink, a + 5, 7, &err));
    assert_true(gguf_write_end(w, &sink, &err));
    assert_true(gguf_write_data(w, &sink, second, sizeof(second), &err));
    assert_true(gguf_write_end(w, &sink, &err));
    gguf_writer_close(w);

    struct gguf *g = NULL;
    assert_true(gguf_parse(b.bytes, b.n_bytes, &g, &err));
    const struct gguf_tensor *t = gguf_find_tensor(g, "a");
    assert_int_equal(t->type, TENSOR_F16);
    assert_int_equal(t->n_cols, 3);
    assert_int_equal(t->n_rows, 2);
    assert_memory_equal(b.bytes + t->offset, a, sizeof(a));
    t = gguf_find_tensor(g, "b");
    assert_int_equal(t->offset % 32, 0);
    assert_memory_equal(b.bytes + t->offset, second, sizeof(second));
    gguf_close(g);
    mem_free(b.bytes);
}

static void data_must_match_the_declaration(void **state)
{
    (void)state;
    struct gguf_writer *w = NULL;
    struct gguf_buffer b = {0};
    const struct gguf_sink sink = gguf_sink_memory(&b);
    struct bn_error err;
    const uint64_t dims[1] = {2};
    const char bytes[16] = {0};
    assert_true(gguf_writer_open(&w, &err));
    gguf_put_tensor(w, "a", ID_F32, 1, dims, 8);
    assert_true(gguf_write_header(w, &sink, &err));
    assert_false(gguf_write_end(w, &sink, &err));
    assert_int_equal(err.code, BN_EARG);
    assert_false(gguf_write_data(w, &sink, bytes, 9, &err));
    assert_true(gguf_write_data(w, &sink, bytes, 8, &err));
    assert_true(gguf_write_end(w, &sink, &err));
    assert_false(gguf_write_data(w, &sink, bytes, 1, &err)); /* no tensor left */
    gguf_writer_close(w);
    mem_free(b.bytes);
}

static bool refuse(void *ud, const void *bytes, size_t n_bytes)
{
    (void)ud;
    (void)bytes;
    (void)n_bytes;
    return false;
}

static void a_failing_sink_is_an_error(void **state)
{
    (void)state;
    struct gguf_writer *w = NULL;
    struct bn_error err;
    const struct gguf_sink sink = {refuse, NULL};
    assert_true(gguf_writer_open(&w, &err));
    assert_false(gguf_write_header(w, &sink, &err));
    assert_int_equal(err.code, BN_EIO);
    gguf_writer_close(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(written_tensors_are_read_back),
        cmocka_unit_test(data_must_match_the_declaration),
        cmocka_unit_test(a_failing_sink_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
