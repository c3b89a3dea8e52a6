/*
 * FNV-1a and SHA-256 against published values.
 */
#include "engine/base/hash.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void digest(const char *bytes, size_t n_bytes, size_t n_chunk, char out[65])
{
    struct sha256 s;
    uint8_t sum[SHA256_BYTES];
    sha256_init(&s);
    for (size_t i = 0; i < n_bytes; i += n_chunk)
        sha256_add(&s, bytes + i, n_bytes - i < n_chunk ? n_bytes - i : n_chunk);
    sha256_end(&s, sum);
    for (size_t i = 0; i < SHA256_BYTES; i++)
        (void)snprintf(out + 2 * i, 3, "%02x", sum[i]);
}

/* From the test vectors of draft-eastlake-fnv. */
static void fnv1a_gives_the_published_values(void **state)
{
    (void)state;
    assert_int_equal(fnv1a_add_bytes(FNV1A_START, "", 0), 0xcbf29ce484222325u);
    assert_int_equal(fnv1a_add_bytes(FNV1A_START, "a", 1), 0xaf63dc4c8601ec8cu);
    assert_int_equal(fnv1a_add_bytes(FNV1A_START, "foobar", 6), 0x85944171f73967e8u);
}

static void sha256_gives_the_examples_of_the_standard(void **state)
{
    static const struct {
        const char *text, *sum;
    } cases[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    };
    char sum[65];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        digest(cases[i].text, strlen(cases[i].text), 64, sum);
        assert_string_equal(sum, cases[i].sum);
    }
}

static void sha256_does_not_depend_on_chunk_sizes(void **state)
{
    static char text[1000000];
    char sum[65];
    (void)state;
    memset(text, 'a', sizeof text);
    for (size_t n_chunk = 1; n_chunk < 2000; n_chunk = 3 * n_chunk + 4) {
        digest(text, sizeof text, n_chunk, sum);
        assert_string_equal(sum,
                            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    }
}

/* Both kinds of padding: the length fits into the last data block, or needs another block. */
static void sha256_pads_every_length(void **state)
{
    static const char zeros[130];
    char before[65] = "", sum[65];
    (void)state;
    for (size_t n = 0; n < sizeof zeros; n++) {
        digest(zeros, n, 7, sum);
        assert_string_not_equal(sum, before);
        memcpy(before, sum, sizeof before);
    }
    digest(zeros, 64, 64, sum);
    assert_string_equal(sum, "f5a5fd42d16a20302798ef6ed309979b43003d2320d9f0e8ea9831a92759fb4b");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fnv1a_gives_the_published_values),
        cmocka_unit_test(sha256_gives_the_examples_of_the_standard),
        cmocka_unit_test(sha256_does_not_depend_on_chunk_sizes),
        cmocka_unit_test(sha256_pads_every_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
