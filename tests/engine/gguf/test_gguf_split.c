/*
 * Split models: three parts with one tensor each in the last two, opened by the name of any part,
 * and every way in which the parts can be missing or contradict each other.
 */
#include "engine/base/memory.h"
#include "engine/file_gguf.h"
#include "tests/support/gguf_write.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define N_PARTS 3

/* What is written to each part. */
struct parts {
    const char *name[N_PARTS]; /* file names in the folder; NULL: the file is not written */
    uint16_t no[N_PARTS], count[N_PARTS];
    const char *arch[N_PARTS];   /* general.architecture; NULL: absent */
    const char *tensor[N_PARTS]; /* NULL: the part has no tensor */
    size_t n_unused[N_PARTS];    /* bytes behind this tensor */
    const char *next[N_PARTS];   /* a tensor behind them; NULL: none */
    int32_t n_tensors;           /* split.tensors.count */
};

static const struct parts good = {
    .name = {"m-00001-of-00003.gguf", "m-00002-of-00003.gguf", "m-00003-of-00003.gguf"},
    .no = {0, 1, 2},
    .count = {3, 3, 3},
    .arch = {"qwen3", NULL, "qwen3"},
    .tensor = {NULL, "first", "second"},
    .n_tensors = 2,
};

static char folder[64];

static char *path_of(const char *name)
{
    static char path[160];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/test_gguf_split.XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    static const char *const names[] = {"m-00001-of-00003.gguf", "m-00002-of-00003.gguf",
                                        "m-00003-of-00003.gguf", "other.gguf"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        (void)unlink(path_of(names[i]));
    return rmdir(folder);
}

static void write_part(const struct parts *p, size_t i)
{
    struct gguf_writer *w;
    struct bn_error err;
    FILE *file = fopen(path_of(p->name[i]), "wb");
    assert_non_null(file);
    const struct gguf_sink sink = gguf_sink_file(file);
    const uint64_t dim = 3;
    float data[64] = {(float)i, 0.5f, 0.25f}; /* 3 values, then unused bytes */
    const size_t n_used = 3 * sizeof data[0], n_bytes = n_used + p->n_unused[i];
    assert_true(n_bytes <= sizeof data);
    assert_true(gguf_writer_open(&w, &err));
    if (p->arch[i])
        gguf_put_str(w, "general.architecture", bn_str_of(p->arch[i]));
    if (i == 0)
        gguf_put_u32(w, "answer", 42);
    gguf_put_raw(w, "split.no", GGUF_U16, &p->no[i]);
    gguf_put_raw(w, "split.count", GGUF_U16, &p->count[i]);
    gguf_put_raw(w, "split.tensors.count", GGUF_I32, &p->n_tensors);
    if (p->tensor[i])
        gguf_put_tensor(w, p->tensor[i], 0, 1, &dim, n_bytes);
    if (p->next[i])
        gguf_put_tensor(w, p->next[i], 0, 1, &dim, n_used);
    assert_true(gguf_write_header(w, &sink, &err));
    if (p->tensor[i]) {
        assert_true(gguf_write_data(w, &sink, data, n_bytes, &err));
        assert_true(gguf_write_end(w, &sink, &err));
    }
    if (p->next[i]) {
        assert_true(gguf_write_data(w, &sink, data, n_used, &err));
        assert_true(gguf_write_end(w, &sink, &err));
    }
    gguf_writer_close(w);
    assert_int_equal(fclose(file), 0);
}

static void write_parts(const struct parts *p)
{
    void *state = NULL;
    assert_int_equal(remove_folder(&state), 0);
    assert_int_equal(mkdir(folder, 0700), 0);
    for (size_t i = 0; i < N_PARTS; i++)
        if (p->name[i])
            write_part(p, i);
}

static void any_part_opens_the_whole_model(void **state)
{
    (void)state;
    write_parts(&good);
    uint8_t sums[N_PARTS][BN_FINGERPRINT_BYTES];
    for (size_t i = 0; i < N_PARTS; i++) {
        struct bn_file *file;
        struct bn_error err;
        uint64_t answer = 0;
        if (!bn_file_open(path_of(good.name[i]), &file, &err))
            fail_msg("%s", err.text);
        assert_string_equal(bn_file_path(file), path_of(good.name[i]));
        assert_true(bn_file_get_u64(file, "answer", &answer) && answer == 42);
        const struct gguf *g = bn_file_gguf(file);
        assert_int_equal(g->n_tensors, 2);
        for (size_t t = 1; t < N_PARTS; t++) {
            const struct gguf_tensor *tensor = gguf_find_tensor(g, good.tensor[t]);
            float first;
            assert_non_null(tensor);
            memcpy(&first, tensor->bytes, sizeof first);
            assert_true(first == (float)t);
        }
        bn_file_fingerprint(file, sums[i]);
        bn_file_close(file);
    }
    assert_memory_equal(sums[0], sums[1], sizeof sums[0]);
    assert_memory_equal(sums[0], sums[2], sizeof sums[0]);
}

/* Opening `name` fails with this code, and the message has these words. */
static void refused(const struct parts *p, const char *name, enum bn_errcode code,
                    const char *words)
{
    struct bn_file *file;
    struct bn_error err;
    write_parts(p);
    assert_false(bn_file_open(path_of(name), &file, &err));
    if (err.code != code || !strstr(err.text, words))
        fail_msg("error %d: %s", (int)err.code, err.text);
}

/* The data of a tensor are padded to a multiple of 32 bytes. */
static void gaps_of_all_parts_are_counted(void **state)
{
    (void)state;
    struct parts p = good;
    struct bn_file *file;
    struct bn_error err;
    p.tensor[0] = "zeroth";
    p.n_unused[1] = 116; /* 3 values and these are 128 bytes */
    p.next[1] = "behind_first";
    p.n_unused[2] = 52; /* 64 bytes */
    p.next[2] = "behind_second";
    p.n_tensors = 5;
    write_parts(&p);
    if (!bn_file_open(path_of(good.name[0]), &file, &err))
        fail_msg("%s", err.text);
    const struct gguf *g = bn_file_gguf(file);
    assert_int_equal(g->n_gaps, 2);
    assert_int_equal(g->gap.n_bytes, 116);
    assert_true(bn_str_is(g->gap.name, "first"));
    assert_int_equal(g->end.n_bytes, 0);
    bn_file_close(file);
    p.next[2] = NULL;
    p.n_tensors = 4;
    write_parts(&p);
    assert_true(bn_file_open(path_of(good.name[0]), &file, &err));
    g = bn_file_gguf(file);
    assert_int_equal(g->n_gaps, 1);
    assert_int_equal(g->end.n_bytes, 52);
    assert_true(bn_str_is(g->end.name, "second"));
    bn_file_close(file);
}

static void missing_and_renamed_parts_are_named(void **state)
{
    (void)state;
    struct parts p = good;
    p.name[1] = NULL;
    refused(&p, good.name[2], BN_EIO, "part 2 of 3");
    refused(&p, good.name[0], BN_EIO, "m-00002-of-00003.gguf': No such file");
    p = good;
    p.name[2] = "other.gguf";
    refused(&p, "other.gguf", BN_EFORMAT, "does not end in -00003-of-00003.gguf");
    refused(&p, good.name[0], BN_EIO, "part 3 of 3");
}

static void parts_that_contradict_each_other_are_refused(void **state)
{
    (void)state;
    struct parts p = good;
    p.no[1] = 2;
    refused(&p, good.name[0], BN_EFORMAT, "part 2 of 3 says that it is part 3 of 3");
    p = good;
    p.count[2] = 4;
    refused(&p, good.name[0], BN_EFORMAT, "part 3 of 3 says that it is part 3 of 4");
    p = good;
    p.no[1] = 7;
    refused(&p, good.name[0], BN_EFORMAT, "part 2: split.no is not a number below");
    p = good;
    p.arch[2] = "llama";
    refused(&p, good.name[0], BN_EFORMAT, "part 3 belongs to another model");
    p = good;
    p.n_tensors = 3;
    refused(&p, good.name[1], BN_EFORMAT, "m-00002-of-00003.gguf: the 3 parts have");
    refused(&p, good.name[1], BN_EFORMAT, "but split.tensors.count of part 1 is 3");
    p = good;
    p.tensor[2] = "first";
    refused(&p, good.name[1], BN_EFORMAT, "tensor 'first' occurs twice");
}

static void a_part_in_memory_is_refused(void **state)
{
    (void)state;
    static uint8_t bytes[4096];
    struct bn_file *file;
    struct bn_error err;
    write_parts(&good);
    FILE *in = fopen(path_of(good.name[1]), "rb");
    assert_non_null(in);
    const size_t n = fread(bytes, 1, sizeof bytes, in);
    (void)fclose(in);
    assert_false(bn_file_open_memory(bytes, n, &file, &err));
    assert_int_equal(err.code, BN_EUNSUPPORTED);
}

static void a_model_of_one_part_needs_no_name(void **state)
{
    (void)state;
    struct parts p = {
        .name = {"other.gguf"}, .count = {1}, .arch = {"qwen3"}, .tensor = {"a"}, .n_tensors = 1};
    struct bn_file *file;
    struct bn_error err;
    write_parts(&p);
    assert_true(bn_file_open(path_of("other.gguf"), &file, &err));
    bn_file_close(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_part_opens_the_whole_model),
        cmocka_unit_test(gaps_of_all_parts_are_counted),
        cmocka_unit_test(missing_and_renamed_parts_are_named),
        cmocka_unit_test(parts_that_contradict_each_other_are_refused),
        cmocka_unit_test(a_part_in_memory_is_refused),
        cmocka_unit_test(a_model_of_one_part_needs_no_name),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
