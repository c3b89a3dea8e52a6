/*
 * Chooses how the inputs of ternary layers are rounded.
 *
 * With `auto`, models that were trained with int8 activations get the rounding of their training,
 * one scale per token. Models that were trained with 16-bit activations would lose much precision
 * with one scale per token, because one outlier takes the whole range of int8. So they get a scale
 * per block of columns.
 */
#include "engine/model/act_scheme.h"

const char *act_scheme_name(enum act_scheme scheme)
{
    static const char *const names[] = {
        [ACT_TOKEN] = "int8 per token",
        [ACT_BLOCK32] = "int8 in blocks of 32 columns",
        [ACT_BLOCK128] = "int8 in blocks of 64 or 128 columns",
        [ACT_16] = "16 bits in two planes of int8",
        [ACT_FLOAT] = "float, not quantised",
    };
    return names[scheme];
}

static void set_scheme(struct model *m, enum act_scheme scheme, const char *reason)
{
    m->act_scheme = scheme;
    m->act_reason = reason;
}

void act_scheme_choose(struct model *m, enum bn_activations requested)
{
    static const enum act_scheme schemes[] = {[BN_ACT_AUTO] = ACT_TOKEN, /* never read */
                                              [BN_ACT_TOKEN] = ACT_TOKEN,
                                              [BN_ACT_BLOCK] = ACT_BLOCK128,
                                              [BN_ACT_16] = ACT_16,
                                              [BN_ACT_FLOAT] = ACT_FLOAT};
    if (requested != BN_ACT_AUTO)
        set_scheme(m, schemes[requested], "as requested");
    else if (m->arch->training == TRAINED_INT8)
        set_scheme(m, ACT_TOKEN, "as in the training of this architecture");
    else if (m->arch->training == TRAINED_16)
        set_scheme(m, ACT_BLOCK32, "this architecture is trained with 16-bit activations");
    else if (m->finest.scaling == SCALE_TENSOR)
        set_scheme(m, ACT_TOKEN, "each matrix has one scale, as in training with int8 activations");
    else if (m->finest.scaling == SCALE_ROW)
        set_scheme(m, ACT_BLOCK32, "the file has a scale per row");
    else
        set_scheme(m, ACT_BLOCK32, "the file has a scale per block");
}
