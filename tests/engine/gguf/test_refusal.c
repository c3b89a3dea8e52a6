/*
 * Tests the messages about models that are refused: each row that the program names is in the table
 * "Refused" of docs/models.md, and the table has no other rows. Argument: the path of the document.
 */
#include "engine/gguf/refusal.h"

#include "engine/gguf/gguf.h"
#include "tests/support/raw_gguf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char *document; /* path of docs/models.md */

/* Copy the first column of the next row of the table to name; false after the last row. */
static bool next_row(FILE *f, char *name, size_t name_bytes)
{
    char line[2000];
    while (fgets(line, sizeof line, f) && strncmp(line, "## ", 3) != 0) {
        if (strncmp(line, "| ", 2) != 0 || strncmp(line, "| Row", 5) == 0)
            continue;
        (void)snprintf(name, name_bytes, "%.*s", (int)(strstr(line + 2, " |") - line - 2),
                       line + 2);
        return true;
    }
    return false;
}

static void the_document_has_exactly_the_rows_of_the_program(void **state)
{
    (void)state;
    char text[2000] = "";
    size_t n_found[N_REFUSALS] = {0};
    FILE *f = fopen(document, "r");
    assert_non_null(f);
    while (strcmp(text, "## Refused\n") != 0)
        if (!fgets(text, sizeof text, f))
            fail_msg("%s has no part 'Refused'", document);
    while (next_row(f, text, sizeof text)) {
        size_t i = 0;
        while (i < N_REFUSALS && strcmp(refusal_rows[i], text) != 0)
            i++;
        if (i == N_REFUSALS)
            fail_msg("the program never names the row '%s'", text);
        n_found[i]++;
    }
    fclose(f);
    for (size_t i = 0; i < N_REFUSALS; i++)
        if (n_found[i] != 1)
            fail_msg("the row '%s' is %zu times in the document", refusal_rows[i], n_found[i]);
}

static void a_long_message_keeps_its_row(void **state)
{
    (void)state;
    struct bn_error err;
    char text[600];
    for (size_t n = 0; n < sizeof text; n += 7) {
        memset(text, 'x', n);
        text[n] = '\0';
        (void)bn_fail(&err, BN_EFORMAT, "%s", text);
        assert_false(refusal_append_row(&err, REFUSED_TILED));
        assert_false(refusal_append_row(&err, REFUSED_DENSE)); /* the first row stays */
        assert_non_null(
            strstr(err.text, ": see models.md of the documentation, row 'TL1 and TL2 files'"));
        assert_null(strstr(err.text, "not ternary"));
        assert_true(n > 400 || strlen(strstr(err.text, ":")) + n == strlen(err.text));
    }
}

static void architectures_types_and_tensors_have_rows(void **state)
{
    (void)state;
    assert_int_equal(refusal_of_arch(bn_str_of("hunyuan-dense")), REFUSED_HUNYUAN);
    assert_int_equal(refusal_of_arch(bn_str_of("gemma3")), REFUSED_OTHER_GRAPH);
    assert_int_equal(refusal_of_arch((struct bn_str){0}), REFUSED_OTHER_GRAPH);
    static const struct {
        uint32_t id;
        enum refusal row;
    } types[] = {{38, REFUSED_TILED},   {39, REFUSED_TILED},   {42, REFUSED_HUNYUAN},
                 {134, REFUSED_OLD_IK}, {142, REFUSED_OLD_IK}, {143, REFUSED_OLD_IK},
                 {12, REFUSED_DENSE},   {23, REFUSED_DENSE}};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        /* 256 columns and a row: 42 bytes are STQ1_0, 52 IQ1_BN without the scale of the row */
        const size_t room = types[i].id == 42 ? 42 : types[i].id == 134 ? 52 : 1000;
        const struct unusable_type v = tensor_type_unusable(types[i].id, 256, 1, room, 1);
        assert_int_equal(refusal_of_type(v.name), types[i].row);
    }
    assert_int_equal(refusal_of_tensor(bn_str_of("blk.3.norm_in.weight")), REFUSED_EMBEDDINGS);
    assert_int_equal(refusal_of_tensor(bn_str_of("blk.3.other.weight")), REFUSED_OTHER_GRAPH);
    assert_int_equal(refusal_of_tensor(bn_str_of("norm_i")), REFUSED_OTHER_GRAPH);
}

static void the_first_bytes_show_which_file_it_is(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t n_bytes;
        enum bn_errcode code;
        const char *words;
    } cases[] = {
        {"version https://git-lfs.github.com/spec/v1\noid sha256:4221b2\nsize 5\n", 66, BN_EFORMAT,
         "a Git LFS pointer, a text of 66 bytes in its place: run 'git lfs pull'"},
        {"<!DOCTYPE html>\n<html>", 22, BN_EFORMAT, "a web page (HTML): download the file itself"},
        {"\xef\xbb\xbf\r\n <HTML lang=en>", 19, BN_EFORMAT, "/resolve/, not /blob/"},
        {"\x0a\0\0\0\0\0\0\0{\"a\":  1 }", 18, BN_EUNSUPPORTED,
         "a safetensors file: see models.md of the documentation, row 'Safetensors"},
        {"PK\x03\x04 archive", 12, BN_EUNSUPPORTED, "row 'Safetensors and PyTorch files'"},
        {"tjgg\x01\0\0\0", 8, BN_EUNSUPPORTED, "row 'GGUF version 1 and big-endian files'"},
        {"\x0b\0\0\0\0\0\0\0{\"a\":  1 }", 18, BN_EFORMAT, "does not begin with 'GGUF'"},
        {"<b>", 3, BN_EFORMAT, "does not begin with 'GGUF'"},
        {"<htm", 4, BN_EFORMAT, "does not begin with 'GGUF'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct raw_gguf r = {0};
        raw_bytes(&r, cases[i].bytes, cases[i].n_bytes);
        raw_refused(&r, cases[i].code, cases[i].words);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_document_has_exactly_the_rows_of_the_program),
        cmocka_unit_test(a_long_message_keeps_its_row),
        cmocka_unit_test(architectures_types_and_tensors_have_rows),
        cmocka_unit_test(the_first_bytes_show_which_file_it_is),
    };
    if (argc < 2) {
        (void)fprintf(stderr, "usage: test_refusal docs/models.md\n");
        return 2;
    }
    document = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
