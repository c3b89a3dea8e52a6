/*
 * The parser: accepted files, and one refused file for each check.
 */
#include "tests/support/raw_gguf.h"

#include "engine/base/memory.h"
#include "tests/support/gguf_write.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void accepts_versions_2_and_3_without_tensors(void **state)
{
    (void)state;
    for (uint32_t version = 2; version <= 3; version++) {
        struct raw_gguf r = {0};
        raw_head(&r, version, 0, 1);
        raw_key(&r, "a", GGUF_U8);
        raw_u8(&r, 7); /* the file ends before the padded data section */
        struct gguf *g = raw_parsed(&r);
        assert_int_equal(g->version, version);
        assert_int_equal(g->n_kvs, 1);
        assert_int_equal(g->n_tensors, 0);
        gguf_close(g);
    }
}

static void refuses_other_file_formats(void **state)
{
    (void)state;
    struct raw_gguf r = {0};
    raw_refused(&r, BN_EFORMAT, "not a GGUF file");
    raw_bytes(&r, "GGML\x03\0\0\0", 8);
    raw_refused(&r, BN_EFORMAT, "not a GGUF file");
    struct raw_gguf cut = {0};
    raw_bytes(&cut, "GGUF\x03\0\0\0", 8);
    raw_refused(&cut, BN_EFORMAT, "inside the GGUF header");
}

static void refuses_other_versions_by_name(void **state)
{
    (void)state;
    static const struct {
        uint32_t version;
        enum bn_errcode code;
        const char *words;
    } cases[] = {{0, BN_EFORMAT, "version 0"},
                 {1, BN_EUNSUPPORTED, "version 1"},
                 {4, BN_EUNSUPPORTED, "version 4"},
                 {0x03000000, BN_EUNSUPPORTED, "big-endian"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct raw_gguf r = {0};
        raw_head(&r, cases[i].version, 0, 0);
        raw_refused(&r, cases[i].code, cases[i].words);
    }
}

static void refuses_counts_larger_than_the_file(void **state)
{
    (void)state;
    static const uint64_t counts[] = {1, 1000, UINT32_MAX, INT64_MAX, UINT64_MAX};
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        struct raw_gguf kvs = {0}, tensors = {0};
        raw_head(&kvs, 3, 0, counts[i]);
        raw_refused(&kvs, BN_EFORMAT, "metadata keys");
        raw_head(&tensors, 3, counts[i], 0);
        raw_refused(&tensors, BN_EFORMAT, "tensors");
    }
}

static void refuses_bad_keys(void **state)
{
    (void)state;
    struct raw_gguf empty = {0}, twice = {0}, kind = {0}, cut = {0}, truth = {0};
    raw_head(&empty, 3, 0, 1);
    raw_key(&empty, "", GGUF_U32);
    raw_u64(&empty, 0);
    raw_refused(&empty, BN_EFORMAT, "0 bytes long");

    raw_head(&twice, 3, 0, 3);
    for (int i = 0; i < 3; i++) {
        raw_key(&twice, i == 1 ? "other" : "same", GGUF_U32);
        raw_u32(&twice, 0);
    }
    raw_refused(&twice, BN_EFORMAT, "'same' occurs twice, as number 0 and 2");

    raw_head(&kind, 3, 0, 1);
    raw_key(&kind, "k", 13);
    raw_u64(&kind, 0);
    raw_refused(&kind, BN_EFORMAT, "value type 13");

    raw_head(&cut, 3, 0, 1);
    raw_key(&cut, "long key", GGUF_U64);
    raw_u32(&cut, 0);
    raw_refused(&cut, BN_EFORMAT, "ends at byte");

    raw_head(&truth, 3, 0, 1);
    raw_key(&truth, "truth", GGUF_BOOL);
    raw_u8(&truth, 2);
    raw_refused(&truth, BN_EFORMAT, "not 0 or 1");
}

static void refuses_lengths_past_the_end(void **state)
{
    (void)state;
    static const uint64_t lengths[] = {9, ((uint64_t)1 << 30) + 1, INT64_MAX, UINT64_MAX - 7,
                                       UINT64_MAX};
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        struct raw_gguf value = {0}, key = {0}, item = {0}, items = {0};
        raw_head(&value, 3, 0, 1);
        raw_key(&value, "k", GGUF_STR);
        raw_u64(&value, lengths[i]);
        raw_u64(&value, 0);
        raw_refused(&value, BN_EFORMAT, "'k': its string");

        raw_head(&key, 3, 0, 1);
        raw_u64(&key, lengths[i] + 8);
        raw_u64(&key, 0);
        raw_refused(&key, BN_EFORMAT, "metadata key 0");

        raw_head(&item, 3, 0, 1);
        raw_key(&item, "k", GGUF_ARRAY);
        raw_u32(&item, GGUF_STR);
        raw_u64(&item, 2);
        raw_str(&item, "a");
        raw_u64(&item, lengths[i]);
        raw_u64(&item, 0);
        raw_refused(&item, BN_EFORMAT, "string 1 of 2");

        raw_head(&items, 3, 0, 1);
        raw_key(&items, "k", GGUF_ARRAY);
        raw_u32(&items, GGUF_U64);
        raw_u64(&items, lengths[i]);
        raw_u64(&items, 0);
        raw_refused(&items, BN_EFORMAT, "items");
    }
}

static void refuses_arrays_of_arrays_and_of_unknown_kinds(void **state)
{
    (void)state;
    static const uint32_t kinds[] = {GGUF_ARRAY, 13, UINT32_MAX};
    for (size_t i = 0; i < 3; i++) {
        struct raw_gguf r = {0};
        raw_head(&r, 3, 0, 1);
        raw_key(&r, "k", GGUF_ARRAY);
        raw_u32(&r, kinds[i]);
        raw_u64(&r, 0);
        if (kinds[i] == GGUF_ARRAY)
            raw_refused(&r, BN_EUNSUPPORTED, "'k': arrays of arrays");
        else
            raw_refused(&r, BN_EFORMAT, "of its array does not exist");
    }
}

static void refuses_invalid_alignments(void **state)
{
    (void)state;
    static const uint32_t alignments[] = {0, 3, 48, 0xffffffff};
    for (size_t i = 0; i < 4; i++) {
        struct raw_gguf r = {0};
        raw_head(&r, 3, 0, 1);
        raw_key(&r, "general.alignment", GGUF_U32);
        raw_u32(&r, alignments[i]);
        raw_refused(&r, BN_EFORMAT, "power of two");
    }
    struct raw_gguf wide = {0};
    raw_head(&wide, 3, 0, 1);
    raw_key(&wide, "general.alignment", GGUF_U64);
    raw_u64(&wide, 64);
    raw_refused(&wide, BN_EFORMAT, "not u32");
}

static void data_begins_at_the_alignment_of_the_file(void **state)
{
    (void)state;
    struct raw_gguf r = {0};
    raw_head(&r, 3, 1, 1);
    raw_key(&r, "general.alignment", GGUF_U32);
    raw_u32(&r, 256);
    raw_info(&r, "t", 4, 1, 0, 256);
    raw_data(&r, 512);
    struct gguf *g = raw_parsed(&r);
    assert_int_equal(g->alignment, 256);
    assert_int_equal(g->data_start, 256);
    assert_int_equal(g->tensors[0].offset, 512);
    assert_int_equal(g->tensors[0].n_bytes, 16);
    gguf_close(g);
}

/* A file of one F32 tensor of this name and shape must be refused. */
static void refuses_tensor(const char *name, uint64_t n_cols, uint64_t n_rows, uint64_t offset,
                           const char *words)
{
    struct raw_gguf r = {0};
    raw_head(&r, 3, 1, 0);
    raw_info(&r, name, n_cols, n_rows, 0, offset);
    raw_data(&r, 128);
    raw_refused(&r, BN_EFORMAT, words);
}

static void refuses_bad_tensor_infos(void **state)
{
    (void)state;
    static const uint64_t wide = (uint64_t)1 << 40;
    struct raw_gguf dims = {0}, twice = {0};
    refuses_tensor("0123456789012345678901234567890123456789012345678901234567890123", 32, 1, 0,
                   "a name of 64 bytes");
    refuses_tensor("", 32, 1, 0, "a name of 0 bytes");
    refuses_tensor("t", UINT64_MAX, 1, 0, "too large");
    refuses_tensor("t", wide, wide, 0, "'t' has too many elements");
    refuses_tensor("t", 4, 1, 8, "offset 8 is not a multiple of 32");
    refuses_tensor("t", 8, 1, UINT64_MAX - 31, "download it again: tensor 't'");

    raw_head(&dims, 3, 1, 0);
    raw_str(&dims, "t");
    raw_u32(&dims, 5);
    raw_data(&dims, 128);
    raw_refused(&dims, BN_EFORMAT, "5 dimensions");

    raw_head(&twice, 3, 2, 0);
    raw_info(&twice, "t", 8, 1, 0, 0);
    raw_info(&twice, "t", 8, 1, 0, 32);
    raw_data(&twice, 128);
    raw_refused(&twice, BN_EFORMAT, "tensor 't' occurs twice");
}

static void refuses_rows_with_partial_blocks(void **state)
{
    (void)state;
    static const uint32_t ids[] = {8, 2, 12, 14, 34, 35, 36};
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        struct raw_gguf r = {0};
        raw_head(&r, 3, 1, 0);
        raw_info(&r, "t", 33, 1, ids[i], 0);
        raw_data(&r, 256);
        raw_refused(&r, BN_EFORMAT, "33 x 1 is not a valid shape for");
    }
}

static void refuses_overlaps(void **state)
{
    (void)state;
    struct raw_gguf overlap = {0};
    raw_head(&overlap, 3, 2, 0);
    raw_info(&overlap, "high", 8, 1, 0, 32);
    raw_info(&overlap, "low", 16, 1, 0, 0);
    raw_data(&overlap, 64);
    raw_refused(&overlap, BN_EFORMAT, "'low' (64 bytes");
}

/* In each order of the two tensors, so the result does not depend on qsort. */
static void a_tensor_without_elements_overlaps_nothing(void **state)
{
    (void)state;
    for (int is_first = 0; is_first < 2; is_first++) {
        struct raw_gguf r = {0};
        struct gguf *g = NULL;
        struct bn_error err;
        raw_head(&r, 3, 2, 0);
        raw_info(&r, is_first ? "empty" : "full", is_first ? 0 : 8, 1, 0, 0);
        raw_info(&r, is_first ? "full" : "empty", is_first ? 8 : 0, 1, 0, 0);
        raw_data(&r, 32);
        assert_true(gguf_parse(r.bytes, r.n_bytes, &g, &err));
        gguf_close(g);
    }
}

/* The message names the first incomplete tensor, its size and the bytes that exist. */
static void a_truncated_file_names_the_tensor(void **state)
{
    (void)state;
    struct raw_gguf r = {0};
    raw_head(&r, 3, 2, 0);
    raw_info(&r, "whole", 8, 1, 0, 0);
    raw_info(&r, "broken", 8, 4, 0, 32);
    raw_data(&r, 32 + 127);
    raw_refused(
        &r, BN_EFORMAT,
        "download it again: tensor 'broken' needs 128 bytes at 32 of the data, which has 159");
    raw_u8(&r, 0);
    gguf_close(raw_parsed(&r));
    struct raw_gguf no_data = {0};
    raw_head(&no_data, 3, 1, 0);
    raw_info(&no_data, "t", 8, 1, 0, 0);
    raw_refused(&no_data, BN_EFORMAT, "its data would begin at byte");
}

/* An interrupted download may end anywhere. */
static void each_cut_says_download_it_again(void **state)
{
    (void)state;
    struct raw_gguf r = {0};
    raw_head(&r, 3, 1, 3);
    raw_key(&r, "number", GGUF_U32);
    raw_u32(&r, 1);
    raw_key(&r, "text", GGUF_STR);
    raw_str(&r, "abc");
    raw_key(&r, "words", GGUF_ARRAY);
    raw_u32(&r, GGUF_STR);
    raw_u64(&r, 2);
    raw_str(&r, "one");
    raw_str(&r, "two");
    raw_info(&r, "t", 8, 1, 0, 0);
    raw_data(&r, 32);
    gguf_close(raw_parsed(&r));
    while (r.n_bytes > 8) { /* a shorter file has no version */
        r.n_bytes--;
        raw_refused(&r, BN_EFORMAT, "the file is truncated or damaged, download it again: ");
    }
}

static void gaps_between_tensors_are_allowed(void **state)
{
    (void)state;
    struct raw_gguf r = {0};
    raw_head(&r, 3, 2, 0);
    raw_info(&r, "b", 8, 1, 0, 128);
    raw_info(&r, "a", 8, 1, 0, 0);
    raw_data(&r, 160);
    struct gguf *g = raw_parsed(&r);
    assert_int_equal(gguf_find_tensor(g, "a")->n_bytes, 32);
    assert_int_equal(gguf_find_tensor(g, "b")->offset, g->data_start + 128);
    gguf_close(g);
}

/* Unused bytes behind "a" and before the second tensor, "b" (F32). */
static void gap_is(uint32_t type, size_t n_cols, size_t n_rows, size_t b_offset, size_t n_unused)
{
    struct raw_gguf r = {0};
    raw_head(&r, 3, 2, 0);
    raw_info(&r, "a", n_cols, n_rows, type, 0);
    raw_info(&r, "b", 8, 1, 0, b_offset);
    raw_data(&r, b_offset + 32);
    struct gguf *g = raw_parsed(&r);
    assert_int_equal(g->n_gaps, n_unused > 0);
    assert_int_equal(g->gap.n_bytes, n_unused);
    assert_int_equal(bn_str_is(g->gap.name, "a"), n_unused > 0);
    assert_int_equal(g->end.n_bytes, 0);
    gguf_close(g);
}

/* n_unused bytes behind the only tensor, of which `counted` are counted. */
static void end_is(size_t n_unused, size_t counted)
{
    struct raw_gguf r = {0};
    raw_head(&r, 3, 1, 0);
    raw_info(&r, "a", 8, 1, 0, 0);
    raw_data(&r, 32 + n_unused);
    struct gguf *g = raw_parsed(&r);
    assert_int_equal(g->n_gaps, 0);
    assert_int_equal(g->end.n_bytes, counted);
    assert_int_equal(bn_str_is(g->end.name, "a"), counted > 0);
    gguf_close(g);
}

static void gaps_of_an_alignment_or_more_are_counted(void **state)
{
    (void)state;
    enum { F32 = 0, IQ1_BN = 134 };
    gap_is(F32, 8, 1, 32, 0);
    gap_is(F32, 8, 1, 64, 32);
    gap_is(F32, 7, 1, 64, 36);
    gap_is(IQ1_BN, 64, 15, 256, 0); /* 225 bytes, so 31 are unused */
}

static void bytes_behind_the_last_tensor_are_no_gap(void **state)
{
    (void)state;
    end_is(0, 0);
    end_is(31, 0);
    end_is(32, 32);
    end_is(64, 64);
}

/* The size of a type that the engine does not know is its room: the bytes up to the next tensor, or
 * to the end of the file. */
static void foreign_types_get_the_room_as_their_size(void **state)
{
    enum { TL2 = 39, UNKNOWN = 4711, I2_S = 36 };
    (void)state;
    struct raw_gguf r = {0};
    raw_head(&r, 3, 3, 0);
    raw_info(&r, "a", 64, 1, TL2, 0);
    raw_info(&r, "b", 64, 1, UNKNOWN, 64);
    raw_info(&r, "c", 128, 1, I2_S, 96);
    raw_data(&r, 96 + 64);
    struct gguf *g = raw_parsed(&r);
    assert_int_equal(gguf_find_tensor(g, "a")->type, TENSOR_OTHER);
    assert_int_equal(gguf_find_tensor(g, "a")->n_bytes, 64);
    assert_int_equal(gguf_find_tensor(g, "b")->type, TENSOR_OTHER);
    assert_int_equal(gguf_find_tensor(g, "b")->n_bytes, 32);
    assert_int_equal(gguf_find_tensor(g, "c")->type, TENSOR_I2_S);
    assert_int_equal(gguf_find_tensor(g, "c")->n_bytes, 64);
    gguf_close(g);
}

/* With a quadratic algorithm this test would exceed the time limit. */
static void a_hundred_thousand_names_are_fast(void **state)
{
    (void)state;
    struct gguf_writer *w = NULL;
    struct gguf_buffer b = {0};
    struct bn_error err;
    const size_t n = 100000;
    const uint64_t dims[1] = {0};
    char name[40];
    assert_true(gguf_writer_open(&w, &err));
    for (size_t i = 0; i < n; i++) {
        (void)snprintf(name, sizeof(name), "name.%06zu", i * 7919 % n);
        gguf_put_u32(w, name, (uint32_t)i);
        gguf_put_tensor(w, name, 0, 1, dims, 0);
    }
    const struct gguf_sink sink = gguf_sink_memory(&b);
    assert_true(gguf_write_header(w, &sink, &err));
    struct gguf *g = NULL;
    assert_true(gguf_parse(b.bytes, b.n_bytes, &g, &err));
    uint64_t v = 0;
    assert_true(gguf_get_u64(g, "name.007919", &v));
    assert_true(v == 1);
    assert_non_null(gguf_find_tensor(g, "name.099999"));
    assert_null(gguf_find_tensor(g, "name.100000"));
    gguf_close(g);
    gguf_writer_close(w);
    mem_free(b.bytes);
}

/* Parse two tensors with an ambiguous id, "a" of 512 x 4 and "b" of n_cols x n_rows, that occupy
 * this many bytes, and check their types. */
static void types_are(uint32_t id, size_t a_bytes, size_t n_cols, size_t n_rows, size_t b_bytes,
                      enum tensor_type a, enum tensor_type b)
{
    struct raw_gguf r = {0};
    raw_head(&r, 3, 2, 0);
    raw_info(&r, "b", n_cols, n_rows, id, a_bytes);
    raw_info(&r, "a", 512, 4, id, 0);
    raw_data(&r, a_bytes + b_bytes);
    struct gguf *g = raw_parsed(&r);
    assert_int_equal(gguf_find_tensor(g, "a")->type, a);
    assert_int_equal(gguf_find_tensor(g, "b")->type, b);
    size_t n_bytes = 0;
    if (tensor_bytes(b, n_cols, n_rows, &n_bytes))
        assert_int_equal(gguf_find_tensor(g, "b")->n_bytes, n_bytes);
    gguf_close(g);
}

/* 2048 elements: 576 bytes in blocks of 64, 544 in blocks of 128, both multiples of 32. */
static void the_room_tells_blocks_of_64_from_blocks_of_128(void **state)
{
    (void)state;
    types_are(42, 576, 1024, 2, 576, TENSOR_Q2_0, TENSOR_Q2_0);
    types_are(42, 544, 1024, 2, 544, TENSOR_Q2_0_G128, TENSOR_Q2_0_G128);
    types_are(42, 576, 64, 3, 54, TENSOR_Q2_0, TENSOR_Q2_0); /* rows that only Q2_0 can have */
    /* Both fit 128 elements, which are 36 or 34 bytes: the other tensor settles it. */
    types_are(42, 576, 128, 1, 36, TENSOR_Q2_0, TENSOR_Q2_0);
    types_are(42, 544, 128, 1, 36, TENSOR_Q2_0_G128, TENSOR_Q2_0_G128);
    types_are(42, 544, 128, 1, 64, TENSOR_Q2_0_G128, TENSOR_Q2_0_G128);
    /* More bytes at the end of the file. */
    types_are(42, 544, 1024, 2, 4096, TENSOR_Q2_0_G128, TENSOR_Q2_0_G128);
    types_are(42, 576, 1024, 2, 4096, TENSOR_Q2_0, TENSOR_Q2_0);
    types_are(142, 544, 1024, 2, 544, TENSOR_PQ2_0, TENSOR_PQ2_0);
    types_are(143, 448, 1024, 2, 448, TENSOR_PTQ1_0, TENSOR_PTQ1_0);
    /* IQ2_TN, IQ1_TN and STQ1_0 of other projects. */
    types_are(142, 544, 1024, 2, 4096, TENSOR_PQ2_0, TENSOR_PQ2_0);
    types_are(142, 576, 1024, 2, 544, TENSOR_PQ2_0, TENSOR_PQ2_0);
    types_are(142, 512 + 32, 256, 2, 128 + 8, TENSOR_PQ2_0, TENSOR_PQ2_0);
    types_are(142, 608, 1024, 2, 520, TENSOR_OTHER, TENSOR_OTHER);
    types_are(143, 416 + 64, 1024, 2, 420, TENSOR_OTHER, TENSOR_OTHER);
    types_are(42, 352, 1024, 2, 336, TENSOR_OTHER, TENSOR_OTHER);
}

static void refuses_two_meanings_of_an_id_in_a_file(void **state)
{
    (void)state;
    struct raw_gguf r = {0};
    raw_head(&r, 3, 2, 0);
    raw_info(&r, "fine", 512, 4, 42, 0);
    raw_info(&r, "coarse", 512, 4, 42, 576);
    raw_data(&r, 576 + 544);
    raw_refused(&r, BN_EFORMAT, "id 42 has two meanings: 'fine' is Q2_0, 'coarse' is Q2_0_G128");
}

static void a_truncated_tensor_has_the_type_of_the_others(void **state)
{
    (void)state;
    static const struct {
        uint32_t id;
        size_t n_bytes; /* of 2048 elements */
    } cases[] = {{42, 576}, {42, 544}, {142, 544}, {143, 448}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char words[80];
        struct raw_gguf r = {0};
        raw_head(&r, 3, 2, 0);
        raw_info(&r, "whole", 512, 4, cases[i].id, 0);
        raw_info(&r, "cut", 512, 4, cases[i].id, cases[i].n_bytes);
        raw_data(&r, 2 * cases[i].n_bytes - 40); /* too few bytes for any meaning */
        (void)snprintf(words, sizeof(words), "download it again: tensor 'cut' needs %zu bytes",
                       cases[i].n_bytes);
        raw_refused(&r, BN_EFORMAT, words);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accepts_versions_2_and_3_without_tensors),
        cmocka_unit_test(refuses_other_file_formats),
        cmocka_unit_test(refuses_other_versions_by_name),
        cmocka_unit_test(refuses_counts_larger_than_the_file),
        cmocka_unit_test(refuses_bad_keys),
        cmocka_unit_test(refuses_lengths_past_the_end),
        cmocka_unit_test(refuses_arrays_of_arrays_and_of_unknown_kinds),
        cmocka_unit_test(refuses_invalid_alignments),
        cmocka_unit_test(data_begins_at_the_alignment_of_the_file),
        cmocka_unit_test(refuses_bad_tensor_infos),
        cmocka_unit_test(refuses_rows_with_partial_blocks),
        cmocka_unit_test(refuses_overlaps),
        cmocka_unit_test(a_tensor_without_elements_overlaps_nothing),
        cmocka_unit_test(a_truncated_file_names_the_tensor),
        cmocka_unit_test(each_cut_says_download_it_again),
        cmocka_unit_test(gaps_between_tensors_are_allowed),
        cmocka_unit_test(gaps_of_an_alignment_or_more_are_counted),
        cmocka_unit_test(bytes_behind_the_last_tensor_are_no_gap),
        cmocka_unit_test(foreign_types_get_the_room_as_their_size),
        cmocka_unit_test(the_room_tells_blocks_of_64_from_blocks_of_128),
        cmocka_unit_test(refuses_two_meanings_of_an_id_in_a_file),
        cmocka_unit_test(a_truncated_tensor_has_the_type_of_the_others),
        cmocka_unit_test(a_hundred_thousand_names_are_fast),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
