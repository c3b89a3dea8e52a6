/*
 * The architectures we run. What differs between them is a column here; the forward pass has one
 * path for all. Metadata keys are prefixed with the name verbatim, dots and dashes included.
 */
#include "engine/model/model.h"

static const struct arch archs[] = {
    {"bitnet-b1.58", ROPE_NEOX, .sub_norms = true, .rotates_part = false},
    {"bitnet-25", ROPE_NEOX, .sub_norms = true, .rotates_part = false},
    {"bitnet", ROPE_NEOX, .sub_norms = true, .rotates_part = true},
    /* Its converter permutes the rows of q and k, hence the other pairing. */
    {"llama", ROPE_NORM, .sub_norms = false, .rotates_part = false},
};

const struct arch *arch_find(struct bn_str name)
{
    for (size_t i = 0; i < sizeof(archs) / sizeof(archs[0]); i++) {
        if (bn_str_is(name, archs[i].name))
            return &archs[i];
    }
    return NULL;
}
