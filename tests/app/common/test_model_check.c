/*
 * Model checks on generated models, intact and damaged. The arguments are a model with one scale
 * per tensor, and one of each preset qwen3-tiny and qwen35-tiny (tests/support/synth.c).
 */
#include "app/common/check/model_check.h"
#include "app/common/file/paths.h"
#include "engine/base/memory.h"
#include "engine/file_gguf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct bn_model_config cfg = {.isa = "ref"};
static const char *path, *blocks_path, *delta_path;

static void collect_steps(void *ud, enum model_check_step step, const struct model_check *check)
{
    (void)check;
    *(unsigned *)ud |= 1u << step;
}

static void an_intact_file_passes_every_step(void **state)
{
    unsigned steps = 0;
    struct model_check check = {.done = collect_steps, .ud = &steps}, silent = {0};
    struct bn_file *file;
    struct bn_error err;
    (void)state;
    assert_true(bn_file_open(path, &file, &err));
    assert_true(model_check_file(file, &cfg, &check, &err));
    assert_int_equal(steps, (1u << (CHECK_KERNELS + 1)) - 1);
    assert_int_equal(check.n_ternary_tensors, 7 * check.n_layers);
    assert_int_equal(check.n_binary_tensors, 0);
    assert_true(check.n_zero_codes > 0 && check.n_zero_codes < check.n_codes);
    assert_true(check.n_numbers > 0);
    assert_string_equal(check.isa_warning, "");
    assert_true(model_check_file(file, &cfg, &silent, &err)); /* without a callback */
    assert_int_equal(silent.n_codes, check.n_codes);
    bn_file_close(file);
}

static const struct gguf_tensor *tensor_of(const struct bn_file *file, const char *name)
{
    const struct gguf_tensor *tensor = gguf_find_tensor(bn_file_gguf(file), name);
    assert_non_null(tensor);
    return tensor;
}

/* Three of the four layers are delta nets, which have no v. */
static void tensors_that_delta_nets_do_not_have_are_not_counted(void **state)
{
    struct model_check check = {0};
    struct bn_file *file;
    struct bn_error err;
    (void)state;
    assert_true(bn_file_open(delta_path, &file, &err));
    assert_true(model_check_file(file, &cfg, &check, &err));
    assert_int_equal(check.n_ternary_tensors, 7 * check.n_layers - 3 + 2); /* embedding and head */
    bn_file_close(file);
}

static void a_wrong_code_stops_after_the_structure(void **state)
{
    unsigned steps = 0;
    struct model_check check = {.done = collect_steps, .ud = &steps};
    struct bn_file *file;
    struct bn_error err;
    char *bytes;
    size_t n_bytes;
    (void)state;
    assert_true(path_read_all(path, SIZE_MAX, &bytes, &n_bytes, &err));
    assert_true(bn_file_open_memory(bytes, n_bytes, &file, &err));
    bytes[tensor_of(file, "blk.1.ffn_down.weight")->offset] = (char)0xff; /* four codes of 3 */
    assert_false(model_check_file(file, &cfg, &check, &err));
    assert_int_equal(err.code, BN_EFORMAT);
    assert_int_equal(steps, 1u << CHECK_STRUCTURE);
    bn_file_close(file);
    mem_free(bytes);
}

/* All scales are read, also those after the ones that settle the class. */
static void every_scale_of_a_block_is_checked(void **state)
{
    unsigned steps = 0;
    struct model_check check = {.done = collect_steps, .ud = &steps};
    struct bn_file *file;
    struct bn_error err;
    char *bytes;
    size_t n_bytes;
    (void)state;
    assert_true(path_read_all(blocks_path, SIZE_MAX, &bytes, &n_bytes, &err));
    assert_true(bn_file_open_memory(bytes, n_bytes, &file, &err));
    if (!model_check_file(file, &cfg, &check, &err))
        fail_msg("%s", err.text);
    assert_int_equal(steps, (1u << (CHECK_KERNELS + 1)) - 1);
    assert_int_equal(check.n_ternary_tensors, 7 * check.n_layers + 2); /* embedding and head */
    /* The scale of the last block, 255: 128 rows of two blocks, each with its scale first. */
    const struct gguf_tensor *down = tensor_of(file, "blk.1.ffn_down.weight");
    const size_t block_bytes = tensor_geometries[down->type].block_bytes;
    static const uint8_t infinite[2] = {0, 0x7c}; /* F16 */
    memcpy(bytes + down->offset + 255 * block_bytes, infinite, sizeof infinite);
    steps = 0;
    assert_false(model_check_file(file, &cfg, &check, &err));
    assert_int_equal(err.code, BN_EFORMAT);
    assert_non_null(strstr(err.text, "'blk.1.ffn_down.weight': the scale of block 255"));
    assert_int_equal(steps, 1u << CHECK_STRUCTURE);
    bn_file_close(file);
    mem_free(bytes);
}

/* test_model.c has the small tensors, which model_open checks. */
static void a_table_that_is_not_finite_is_found(void **state)
{
    unsigned steps = 0;
    struct model_check check = {.done = collect_steps, .ud = &steps};
    struct bn_file *file;
    struct bn_error err;
    char *bytes;
    size_t n_bytes;
    static const uint8_t infinite[2] = {0, 0x7c}; /* F16 */
    (void)state;
    assert_true(path_read_all(path, SIZE_MAX, &bytes, &n_bytes, &err));
    assert_true(bn_file_open_memory(bytes, n_bytes, &file, &err));
    memcpy(bytes + tensor_of(file, "token_embd.weight")->offset + 2, infinite, sizeof infinite);
    assert_false(model_check_file(file, &cfg, &check, &err));
    assert_int_equal(err.code, BN_EFORMAT);
    assert_non_null(strstr(err.text, "'token_embd.weight': element 1 of row 0"));
    assert_int_equal(steps, 1u << CHECK_STRUCTURE | 1u << CHECK_CODES);
    bn_file_close(file);
    mem_free(bytes);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_intact_file_passes_every_step),
        cmocka_unit_test(tensors_that_delta_nets_do_not_have_are_not_counted),
        cmocka_unit_test(a_wrong_code_stops_after_the_structure),
        cmocka_unit_test(every_scale_of_a_block_is_checked),
        cmocka_unit_test(a_table_that_is_not_finite_is_found),
    };
    if (argc != 4)
        return 2;
    path = argv[1];
    blocks_path = argv[2];
    delta_path = argv[3];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
