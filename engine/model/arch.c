/*
 * The supported architectures. Each difference between them is a column of this table; the forward
 * pass has one path for all. Metadata keys have the name as prefix.
 */
#include "engine/gguf/gguf_le.h"
#include "engine/model/model.h"

static const struct arch archs[] = {
    {"bitnet-b1.58", ROPE_NEOX, .sub_norms = true, .act = FFN_RELU2, .mislabels = SHAPE_1BITLLM},
    {"bitnet-25", ROPE_NEOX, .sub_norms = true, .act = FFN_RELU2},
    {"bitnet", ROPE_NEOX, .sub_norms = true, .partial_rope = true, .act = FFN_SILU,
     .mislabels = SHAPE_2B4T},
    /* Its converter permutes the rows of q and k, which changes the pairs of RoPE. */
    {"llama", ROPE_NORM, .act = FFN_SILU},
};
#define N_ARCHS (sizeof(archs) / sizeof(archs[0]))

const struct arch *arch_find(struct bn_str name)
{
    for (size_t i = 0; i < N_ARCHS; i++) {
        if (bn_str_is(name, archs[i].name))
            return &archs[i];
    }
    return NULL;
}

void arch_list(char *list, size_t list_bytes)
{
    list[0] = '\0';
    for (size_t i = 0; i < N_ARCHS; i++)
        str_list_add(list, list_bytes, archs[i].name);
}
