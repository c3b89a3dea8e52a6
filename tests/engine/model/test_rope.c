/*
 * RoPE frequencies and angles with the published settings of YaRN models. The expected frequencies
 * were computed by an independent implementation of the equations (NumPy, double precision).
 */
#include "engine/model/rope.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define N_ROT 128

/* A model with 128 rotated elements, and YaRN with the usual betas if factor is not 0. */
static struct model model_of(double base, double factor, double original_ctx)
{
    return (struct model){.hp = {.n_rot = N_ROT,
                                 .rope_base = base,
                                 .rope_scale = 1.0,
                                 .yarn = {factor, original_ctx, 32.0, 1.0, 1.0},
                                 .rope_magnitude = 1.0}};
}

static void frequencies(const struct model *m, double freq[N_ROT / 2])
{
    struct bn_error err;
    if (!rope_freq_init(freq, m, false, &err))
        fail_msg("%s", err.text);
}

static void same(double a, double b)
{
    if (!(fabs(a - b) <= 1e-8 * fabs(b)))
        fail_msg("%.9g is not %.9g", a, b);
}

/* Ternary Bonsai 8B: base 1e6, factor 4, original context 16384. Pairs up to 20 keep their
 * frequency, those from 37 on turn at a quarter of it. */
static void yarn_gives_the_computed_frequencies(void **state)
{
    (void)state;
    static const struct {
        size_t pair;
        double freq;
    } expected[] = {
        {0, 1.0},
        {20, 0.0133352143},
        {21, 0.0102719866},
        {24, 0.00463104621},
        {28, 0.00153441828},
        {32, 0.000470588235},
        {36, 0.000124028383},
        {37, 8.49552082e-05},
        {63, 3.1023444e-07},
    };
    const struct model m = model_of(1e6, 4.0, 16384.0);
    double freq[N_ROT / 2];
    frequencies(&m, freq);
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++)
        same(freq[expected[i].pair], expected[i].freq);
}

/* Pairs up to `low` keep their frequency and those from `high` on turn at 1 / factor of it. */
static void limits_follow_base_and_context(void **state)
{
    (void)state;
    static const struct {
        double base, original_ctx;
        size_t low, high;
    } cases[] = {{5e6, 8192.0, 15, 30}, {1e6, 8192.0, 17, 34}, {1e6, 16384.0, 20, 37}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct model plain = model_of(cases[i].base, 0.0, 0.0);
        const struct model yarn = model_of(cases[i].base, 4.0, cases[i].original_ctx);
        double all[N_ROT / 2], freq[N_ROT / 2];
        frequencies(&plain, all);
        frequencies(&yarn, freq);
        for (size_t j = 0; j < N_ROT / 2; j++) {
            const double part = freq[j] / all[j];
            if (j <= cases[i].low)
                same(part, 1.0);
            else if (j >= cases[i].high)
                same(part, 0.25);
            else
                assert_true(part > 0.2501 && part < 0.9999);
        }
    }
}

static void without_the_blend_every_pair_is_slowed_down(void **state)
{
    (void)state;
    struct model m = model_of(1e6, 4.0, 16384.0);
    m.hp.yarn.ext_factor = 0.0;
    double freq[N_ROT / 2];
    frequencies(&m, freq);
    for (size_t i = 0; i < N_ROT / 2; i++)
        same(freq[i], pow(1e6, -2.0 * (double)i / N_ROT) / 4.0);
}

/* With a base near 1, the computed limits lie far outside the pairs, on one side or on both. The
 * frequencies must still be finite. */
static void extreme_contexts_give_finite_frequencies(void **state)
{
    (void)state;
    static const double contexts[] = {1.0, 7.0, 1073741824.0};
    for (size_t i = 0; i < 3; i++) {
        const struct model m = model_of(1.0 + 1e-9, 1e6, contexts[i]);
        double freq[N_ROT / 2];
        frequencies(&m, freq);
        for (size_t j = 0; j < N_ROT / 2; j++)
            assert_true(isfinite(freq[j]) && freq[j] > 0.0);
    }
}

/* 1.138629436 is the magnitude of YaRN for factor 4, 0.1 ln 4 + 1; 1.296476993 is its square. */
static void cosines_and_sines_carry_the_magnitude(void **state)
{
    (void)state;
    const struct model m = model_of(1e6, 4.0, 16384.0);
    double freq[N_ROT / 2];
    float c[N_ROT / 2], s[N_ROT / 2], plain_c[N_ROT / 2], plain_s[N_ROT / 2];
    frequencies(&m, freq);
    rope_angles(freq, N_ROT / 2, 1.138629436, 5000, c, s);
    rope_angles(freq, N_ROT / 2, 1.0, 5000, plain_c, plain_s);
    for (size_t i = 0; i < N_ROT / 2; i++) {
        assert_true(plain_c[i] == (float)cos(5000.0 * freq[i]));
        assert_true(plain_s[i] == (float)sin(5000.0 * freq[i]));
        const double squares = (double)c[i] * (double)c[i] + (double)s[i] * (double)s[i];
        assert_true(fabs(squares - 1.296476993) < 1e-6);
    }
}

static void longrope_depends_on_the_context_of_the_session(void **state)
{
    (void)state;
    static const float factors[2][N_ROT / 2] = {{2.0f}, {8.0f}};
    uint8_t bytes[2][N_ROT / 2 * sizeof(float)];
    struct model m = model_of(1e4, 0.0, 0.0);
    m.hp.rope_short_ctx = 128;
    assert_false(rope_is_long(&m, 129)); /* without the tensors no session is long */
    for (size_t i = 0; i < 2; i++)
        for (size_t j = 0; j < N_ROT / 2; j++) {
            const float f = factors[i][0];
            memcpy(bytes[i] + 4 * j, &f, sizeof f);
        }
    m.rope_factors_short.bytes = bytes[0];
    m.rope_factors_long.bytes = bytes[1];
    assert_false(rope_is_long(&m, 128));
    assert_true(rope_is_long(&m, 129));
    struct bn_error err;
    double freq[2][N_ROT / 2];
    assert_true(rope_freq_init(freq[0], &m, false, &err));
    assert_true(rope_freq_init(freq[1], &m, true, &err));
    for (size_t i = 0; i < N_ROT / 2; i++) {
        same(freq[0][i], pow(1e4, -2.0 * (double)i / N_ROT) / 2.0);
        same(freq[1][i], pow(1e4, -2.0 * (double)i / N_ROT) / 8.0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(yarn_gives_the_computed_frequencies),
        cmocka_unit_test(limits_follow_base_and_context),
        cmocka_unit_test(without_the_blend_every_pair_is_slowed_down),
        cmocka_unit_test(extreme_contexts_give_finite_frequencies),
        cmocka_unit_test(cosines_and_sines_carry_the_magnitude),
        cmocka_unit_test(longrope_depends_on_the_context_of_the_session),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
