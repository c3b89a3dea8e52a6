/*
 * The measure of the sense check, its text, and its verdict on a trained model. The arguments
 * are a model with a vocabulary of bytes, and tests/app/data/trained.gguf.
 */
#include "app/common/check/sense_check.h"
#include "app/common/file/paths.h"
#include "engine/base/memory.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *bytes_path, *trained_path;

/* The ids 7 8 9 8 after a first id: frequencies 1/4, 1/2, 1/4. */
static const struct sense_text text = {.ids = {5, 7, 8, 9, 8}, .n_ids = 5, .first = 1};
#define N_SCORED 4

struct fixture {
    struct head_cand cands[N_SCORED][4];
    struct head_row rows[N_SCORED];
};

/* Every row has the logits z of ids 7, 8, 9, and one of an id that is not scored. */
static void fill(struct fixture *f, const float z[3])
{
    for (size_t i = 0; i < N_SCORED; i++) {
        f->cands[i][0] = (struct head_cand){100, 1000.0f};
        for (size_t j = 0; j < 3; j++)
            f->cands[i][j + 1] = (struct head_cand){(int32_t)(7 + j), z[j]};
        f->rows[i] = (struct head_row){.cands = f->cands[i], .cap = 4, .n = 4};
    }
}

static struct sense_result measure(const struct fixture *f)
{
    struct sense_result r;
    sense_measure(&text, f->rows, &r);
    assert_null(r.why);
    return r;
}

static void the_bound_is_the_entropy_of_the_scored_tokens(void **state)
{
    struct fixture f;
    (void)state;
    fill(&f, (const float[]){0, 0, 0});
    const struct sense_result r = measure(&f);
    assert_true(fabs(r.bound - 1.5 * log(2)) < 1e-12);
    assert_true(fabs(r.loss - log(3)) < 1e-12); /* equal logits: one of three */
    assert_true(r.is_nonsense);
}

static void the_frequencies_themselves_have_the_bound_as_loss(void **state)
{
    struct fixture f;
    (void)state;
    fill(&f, (const float[]){0, (float)log(2), 0});
    const struct sense_result r = measure(&f);
    assert_true(fabs(r.loss - r.bound) < 1e-6);
}

/* Gibbs' inequality: without context no prediction is better than the frequencies. */
static void no_fixed_prediction_is_below_the_bound(void **state)
{
    struct fixture f;
    uint32_t x = 1;
    (void)state;
    for (size_t i = 0; i < 1000; i++) {
        float z[3];
        for (size_t j = 0; j < 3; j++) {
            x = x * 1664525u + 1013904223u;
            z[j] = (float)(x >> 8) / (float)(1 << 22) - 2.0f;
        }
        fill(&f, z);
        const struct sense_result r = measure(&f);
        assert_true(r.loss >= r.bound - 1e-9);
    }
}

static void right_predictions_pass_and_huge_logits_do_not_overflow(void **state)
{
    struct fixture f;
    (void)state;
    fill(&f, (const float[]){-1e30f, -1e30f, -1e30f});
    for (size_t i = 0; i < N_SCORED; i++)
        f.cands[i][text.ids[1 + i] - 6].logit = 1e30f;
    const struct sense_result r = measure(&f);
    assert_true(r.loss == 0);
    assert_false(r.is_nonsense);
}

static void logits_that_are_no_numbers_are_nonsense(void **state)
{
    struct fixture f;
    (void)state;
    fill(&f, (const float[]){NAN, NAN, NAN});
    assert_true(measure(&f).is_nonsense);
}

struct open {
    struct bn_file *file;
    struct tokenizer *t;
};

static void open_both(struct open *o, const char *path)
{
    const struct tokenizer_config no_notes = {0};
    struct bn_error err;
    assert_true(bn_file_open(path, &o->file, &err));
    assert_true(tokenizer_open(o->file, &no_notes, &o->t, &err));
}

static void close_both(struct open *o)
{
    tokenizer_close(o->t);
    bn_file_close(o->file);
}

static void a_vocabulary_of_bytes_cannot_be_judged(void **state)
{
    struct sense_result r = {.is_nonsense = true};
    struct sense_text made;
    struct bn_error err;
    struct open o;
    (void)state;
    open_both(&o, bytes_path);
    assert_true(sense_text_make(o.file, o.t, &made, &err));
    assert_non_null(strstr(made.why, "vocabulary"));
    assert_true(sense_check(NULL, o.file, o.t, NULL, &r, &err)); /* does not need the model */
    assert_non_null(r.why);
    assert_false(r.is_nonsense);
    close_both(&o);
}

static void the_text_has_a_bos_and_whole_words(void **state)
{
    struct sense_text made;
    struct bn_error err;
    struct open o;
    (void)state;
    open_both(&o, trained_path);
    assert_true(sense_text_make(o.file, o.t, &made, &err));
    assert_null(made.why);
    assert_int_equal(made.ids[0], tokenizer_info(o.t)->bos);
    assert_int_equal(made.n_ids, 12); /* the bos, six days, five commas */
    assert_int_equal(made.first, 2);
    close_both(&o);
}

static uint8_t *put(uint8_t *at, const void *bytes, size_t n)
{
    memcpy(at, bytes, n);
    return at + n;
}

static uint8_t *put_text(uint8_t *at, const char *s)
{
    const uint64_t n = strlen(s);
    return put(put(at, &n, sizeof(n)), s, n);
}

/* Whether the trained model can be judged if its file lists these two languages. */
static bool is_judged(const char *first, const char *second)
{
    const struct tokenizer_config no_notes = {0};
    const uint32_t types[2] = {9, 8}; /* an array of strings */
    const uint64_t n_items = 2;
    struct sense_text made;
    struct bn_error err;
    struct open o;
    char *bytes;
    size_t n_bytes;
    assert_true(path_read_all(trained_path, SIZE_MAX, &bytes, &n_bytes, &err));
    const size_t n_room = n_bytes + 300; /* the key, and bytes after the tensors */
    uint8_t *longer = mem_alloc(n_room, 1);
    assert_non_null(longer);
    memset(longer, 0, n_room);
    uint8_t *at = put(longer, bytes, 24);
    longer[16]++; /* the number of keys, which is small */
    at = put(put_text(at, "general.languages"), types, sizeof(types));
    at = put_text(put_text(put(at, &n_items, sizeof(n_items)), first), second);
    (void)put(at, bytes + 24, n_bytes - 24);
    if (!bn_file_open_memory(longer, n_room, &o.file, &err))
        fail_msg("%s", err.text);
    assert_true(tokenizer_open(o.file, &no_notes, &o.t, &err));
    assert_true(sense_text_make(o.file, o.t, &made, &err));
    assert_true(!made.why || strstr(made.why, "languages"));
    close_both(&o);
    mem_free(longer);
    mem_free(bytes);
    return !made.why;
}

static void a_file_of_other_languages_cannot_be_judged(void **state)
{
    (void)state;
    assert_false(is_judged("de", "ja"));
    assert_true(is_judged("zh", "en"));
    assert_true(is_judged("English", ""));
}

static void check_trained(enum bn_i2s_layout layout, bool is_nonsense)
{
    const struct bn_model_config cfg = {.isa = "ref", .n_ubatch = 5, .i2s_layout = layout};
    struct bn_cancel cancelled;
    struct sense_result r;
    struct bn_model *model;
    struct bn_error err;
    struct open o;
    open_both(&o, trained_path);
    assert_true(bn_model_open(o.file, &cfg, &model, &err));
    assert_true(sense_check(model, o.file, o.t, NULL, &r, &err));
    assert_null(r.why);
    assert_int_equal(r.is_nonsense, is_nonsense);
    assert_true(is_nonsense ? r.loss > 2.0 : r.loss < 0.4);
    assert_true(r.bound > 1.49 && r.bound < 1.51);
    atomic_init(&cancelled.requested, true);
    assert_false(sense_check(model, o.file, o.t, &cancelled, &r, &err));
    assert_int_equal(err.code, BN_ECANCELLED);
    bn_model_close(model);
    close_both(&o);
}

static void a_trained_model_predicts_the_text(void **state)
{
    (void)state;
    check_trained(BN_I2S_A, false);
}

static void wrong_layouts_are_nonsense(void **state)
{
    (void)state;
    check_trained(BN_I2S_B, true);
    check_trained(BN_I2S_C, true);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bound_is_the_entropy_of_the_scored_tokens),
        cmocka_unit_test(the_frequencies_themselves_have_the_bound_as_loss),
        cmocka_unit_test(no_fixed_prediction_is_below_the_bound),
        cmocka_unit_test(right_predictions_pass_and_huge_logits_do_not_overflow),
        cmocka_unit_test(logits_that_are_no_numbers_are_nonsense),
        cmocka_unit_test(a_vocabulary_of_bytes_cannot_be_judged),
        cmocka_unit_test(the_text_has_a_bos_and_whole_words),
        cmocka_unit_test(a_file_of_other_languages_cannot_be_judged),
        cmocka_unit_test(a_trained_model_predicts_the_text),
        cmocka_unit_test(wrong_layouts_are_nonsense),
    };
    if (argc != 3)
        return 2;
    bytes_path = argv[1];
    trained_path = argv[2];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
