/*
 * make_model: writes a synthetic ternary GGUF model for experiments, tests and benchmarks.
 *
 * Without options it writes a tiny model with a vocabulary of bytes, which answers with nonsense. A
 * preset gives the shape of a real model, which runs at the speed of that model.
 */
#include "tests/support/synth.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <strings.h>

static const char usage[] =
    "usage: make_model [OPTIONS] OUT.gguf\n"
    "Writes a ternary model with random weights.\n"
    "  --preset NAME    tiny (default), odd, small, 1b, 2b4t, 8b; in pq2_0 with a scale per 128\n"
    "                   columns: qwen3-tiny, bonsai-1.7b, bonsai-4b, bonsai-8b; with experts:\n"
    "                   maple-tiny; with recurrent layers: qwen35-tiny, bonsai-27b\n"
    "  --shape L,E,H,KV,F,C  layers, embedding, heads, key/value heads, feed-forward, context\n"
    "  --head-dim N     elements per attention head; default embedding / heads\n"
    "  --arch NAME      bitnet-b1.58 (default), bitnet-25, bitnet, llama, minicpm, qwen3, maple,\n"
    "                   qwen35\n"
    "  --type NAME      i2_s (default), tq1_0, tq2_0, q2_0 (blocks of 64), q2_0_g128 (of 128),\n"
    "                   pq2_0, ptq1_0, q1_0 (binary), iq1_bn, iq2_bn,\n"
    "                   iq2_bn_r4, f16, f32, bf16\n"
    "  --layout X       a (default), b, c: the layout of i2_s\n"
    "  --grain NAME     tensor (default), row, 64, 128, 256: the columns that share a scale\n"
    "  --head NAME      f16 (default), f32, bf16, q8_0, q6_k, q4_0, q4_k, or a type in blocks of\n"
    "                   --type: embedding, output head\n"
    "  --ternary-head   ternary values in embedding and output head, also in float types\n"
    "  --vocab NAME     bytes, qwen (bytes, no BOS), or llama3-like: synthetic BPE with Llama 3's\n"
    "                   special tokens\n"
    "  --n-vocab N      size of a llama3-like vocabulary, default 128256\n"
    "  --untied         a separate output head\n"
    "  --yarn F,C       YaRN of factor F for an original context of C tokens\n"
    "  --experts N,K    maple: N experts, of which a token uses K; default 8,3\n"
    "  --delta K,V,N,I  qwen35: K key heads, V value heads of N elements; every Ith layer is\n"
    "                   attention; default 2,4,64,4\n"
    "  --window N       maple: window of all layers but every fourth; default 40\n"
    "  --rope-freqs     with rope_freqs.weight\n"
    "  --longrope C     with factors for contexts up to C tokens and beyond\n"
    "  --scales         f16, f32, bf16 layers as -1, 0, +1 with X.scale tensors\n"
    "  --biases         with X.bias tensors\n"
    "  --rotated N      a rotated file with transforms of N elements\n"
    "  --rotated-version N  1 (default) or 2, which needs a tied output head\n"
    "  --no-signs       a rotated file without signs\n"
    "  --extra A,B      more tensors with these names, F32 vectors of the embedding's length\n"
    "  --official       no pre-tokenizer name, broken chat template: as the published 2B4T file\n"
    "  --seed N         default 1\n";

enum option_id {
    OPT_PRESET = 1,
    OPT_SHAPE,
    OPT_HEAD_DIM,
    OPT_ARCH,
    OPT_TYPE,
    OPT_LAYOUT,
    OPT_GRAIN,
    OPT_TERNARY_HEAD,
    OPT_HEAD,
    OPT_VOCAB,
    OPT_N_VOCAB,
    OPT_UNTIED,
    OPT_YARN,
    OPT_EXPERTS,
    OPT_DELTA,
    OPT_WINDOW,
    OPT_ROPE_FREQS,
    OPT_LONGROPE,
    OPT_SCALES,
    OPT_BIASES,
    OPT_OFFICIAL,
    OPT_ROTATED,
    OPT_ROTATED_VERSION,
    OPT_NO_SIGNS,
    OPT_EXTRA,
    OPT_SEED,
    OPT_HELP,
};

static const struct option options[] = {
    {"preset", required_argument, NULL, OPT_PRESET},
    {"shape", required_argument, NULL, OPT_SHAPE},
    {"head-dim", required_argument, NULL, OPT_HEAD_DIM},
    {"arch", required_argument, NULL, OPT_ARCH},
    {"type", required_argument, NULL, OPT_TYPE},
    {"layout", required_argument, NULL, OPT_LAYOUT},
    {"grain", required_argument, NULL, OPT_GRAIN},
    {"head", required_argument, NULL, OPT_HEAD},
    {"ternary-head", no_argument, NULL, OPT_TERNARY_HEAD},
    {"vocab", required_argument, NULL, OPT_VOCAB},
    {"n-vocab", required_argument, NULL, OPT_N_VOCAB},
    {"untied", no_argument, NULL, OPT_UNTIED},
    {"yarn", required_argument, NULL, OPT_YARN},
    {"experts", required_argument, NULL, OPT_EXPERTS},
    {"delta", required_argument, NULL, OPT_DELTA},
    {"window", required_argument, NULL, OPT_WINDOW},
    {"rope-freqs", no_argument, NULL, OPT_ROPE_FREQS},
    {"longrope", required_argument, NULL, OPT_LONGROPE},
    {"scales", no_argument, NULL, OPT_SCALES},
    {"biases", no_argument, NULL, OPT_BIASES},
    {"official", no_argument, NULL, OPT_OFFICIAL},
    {"rotated", required_argument, NULL, OPT_ROTATED},
    {"rotated-version", required_argument, NULL, OPT_ROTATED_VERSION},
    {"no-signs", no_argument, NULL, OPT_NO_SIGNS},
    {"extra", required_argument, NULL, OPT_EXTRA},
    {"seed", required_argument, NULL, OPT_SEED},
    {"help", no_argument, NULL, OPT_HELP},
    {NULL, 0, NULL, 0},
};

static bool parse_type(const char *text, bool for_head, enum tensor_type *out)
{
    for (enum tensor_type type = TENSOR_F32; type < TENSOR_OTHER; type++) {
        if (strcasecmp(tensor_geometries[type].name, text) != 0)
            continue;
        *out = type;
        return for_head ? tensor_geometries[type].is_table : tensor_is_linear(type);
    }
    return false;
}

static bool parse_number(const char *text, uint64_t *out)
{
    char *end;
    errno = 0;
    *out = strtoull(text, &end, 10);
    return *text >= '0' && *text <= '9' && *end == '\0' && errno == 0;
}

static bool parse_shape(const char *text, struct synth_spec *s)
{
    return sscanf(text, "%zu,%zu,%zu,%zu,%zu,%zu", &s->n_layers, &s->n_embd, &s->n_heads,
                  &s->n_kv_heads, &s->n_ff, &s->n_ctx) == 6;
}

static bool parse_grain(const char *text, struct synth_spec *s)
{
    static const struct {
        const char *name;
        size_t scale_cols;
    } grains[] = {{"tensor", 0}, {"row", SYNTH_ROW_SCALES}, {"64", 64}, {"128", 128}, {"256", 256}};
    for (size_t i = 0; i < sizeof(grains) / sizeof(grains[0]); i++) {
        if (strcmp(text, grains[i].name) != 0)
            continue;
        s->scale_cols = grains[i].scale_cols;
        return true;
    }
    return false;
}

static bool parse_vocab(const char *text, struct synth_spec *s)
{
    if (strcmp(text, "bytes") == 0) {
        s->vocab = SYNTH_VOCAB_BYTES;
        s->n_vocab = SYNTH_N_VOCAB_BYTES;
        return true;
    }
    if (strcmp(text, "qwen") == 0) {
        s->vocab = SYNTH_VOCAB_QWEN;
        s->n_vocab = SYNTH_N_VOCAB_QWEN;
        return true;
    }
    if (s->vocab != SYNTH_VOCAB_LLAMA3)
        s->n_vocab = SYNTH_N_VOCAB_LLAMA3;
    s->vocab = SYNTH_VOCAB_LLAMA3;
    return strcmp(text, "llama3-like") == 0;
}

static bool parse_preset(const char *text, struct synth_spec *s)
{
    *s = synth_preset(text);
    return s->name != NULL;
}

static bool apply_flag(int id, struct synth_spec *s)
{
    s->untied |= id == OPT_UNTIED;
    s->ternary_head |= id == OPT_TERNARY_HEAD;
    s->rope_freqs |= id == OPT_ROPE_FREQS;
    s->scales |= id == OPT_SCALES;
    s->biases |= id == OPT_BIASES;
    s->official |= id == OPT_OFFICIAL;
    s->no_signs |= id == OPT_NO_SIGNS;
    return id == OPT_UNTIED || id == OPT_TERNARY_HEAD || id == OPT_ROPE_FREQS || id == OPT_SCALES ||
           id == OPT_BIASES || id == OPT_OFFICIAL || id == OPT_NO_SIGNS;
}

static bool apply(int id, const char *value, struct synth_spec *s)
{
    uint64_t n = 0;
    switch (id) {
    case OPT_PRESET:
        return parse_preset(value, s);
    case OPT_SHAPE:
        s->name = "shape";
        return parse_shape(value, s);
    case OPT_ARCH:
        s->arch = value;
        return arch_find(bn_str_of(value)) != NULL;
    case OPT_TYPE:
        return parse_type(value, false, &s->type);
    case OPT_HEAD:
        return parse_type(value, true, &s->head);
    case OPT_LAYOUT:
        s->layout = (enum bn_i2s_layout)(value[0] - 'a');
        return value[0] >= 'a' && value[0] <= 'c' && value[1] == '\0';
    case OPT_GRAIN:
        return parse_grain(value, s);
    case OPT_VOCAB:
        return parse_vocab(value, s);
    case OPT_N_VOCAB:
        s->vocab = SYNTH_VOCAB_LLAMA3;
        return parse_number(value, &n) && (s->n_vocab = (size_t)n) > 0;
    case OPT_HEAD_DIM:
        return parse_number(value, &n) && (s->head_dim = (size_t)n) > 0;
    case OPT_ROTATED:
        return parse_number(value, &n) && (s->rotated_block = (size_t)n) > 0;
    case OPT_ROTATED_VERSION:
        return parse_number(value, &n) && (s->rotated_version = (unsigned)n) > 0;
    case OPT_EXTRA:
        s->extra = value;
        return true;
    case OPT_DELTA:
        return sscanf(value, "%zu,%zu,%zu,%zu", &s->delta.n_key_heads, &s->delta.n_value_heads,
                      &s->delta.dim, &s->delta.interval) == 4 &&
               s->delta.interval > 0;
    case OPT_EXPERTS:
        return sscanf(value, "%zu,%zu", &s->n_experts, &s->n_used_experts) == 2;
    case OPT_WINDOW:
        return parse_number(value, &n) && (s->window = (size_t)n) > 0;
    case OPT_LONGROPE:
        return parse_number(value, &n) && (s->longrope = (size_t)n) > 0;
    case OPT_YARN:
        return sscanf(value, "%f,%zu", &s->yarn, &s->yarn_ctx) == 2;
    case OPT_SEED:
        return parse_number(value, &s->seed);
    default:
        return apply_flag(id, s);
    }
}

static int write_model(const struct synth_spec *spec, const char *path)
{
    struct bn_error err;
    FILE *f = fopen(path, "wb");
    if (!f) {
        (void)fprintf(stderr, "make_model: cannot write '%s': %s\n", path, strerror(errno));
        return 1;
    }
    const struct gguf_sink sink = gguf_sink_file(f);
    bool ok = synth_write(spec, &sink, &err);
    if (fclose(f) != 0 && ok)
        ok = bn_fail(&err, BN_EIO, "'%s': %s", path, strerror(errno));
    if (!ok) {
        (void)fprintf(stderr, "make_model: %s\n", err.text);
        (void)remove(path); /* an incomplete model is useless */
        return 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct synth_spec spec = synth_preset("tiny");
    /* Read the preset first, because the other options change it. */
    for (int pass = 0; pass < 2; pass++) {
        optind = 1;
        opterr = pass;
        for (int id; (id = getopt_long(argc, argv, "", options, NULL)) != -1;) {
            if (pass == 0 && id == OPT_HELP)
                return fputs(usage, stdout) < 0;
            if ((id == OPT_PRESET) == (pass == 0) && !apply(id, optarg, &spec)) {
                (void)fprintf(stderr, "make_model: '%s' is not understood\n%s",
                              optarg ? optarg : "", usage);
                return 2;
            }
        }
    }
    if (optind + 1 != argc) {
        (void)fputs(usage, stderr);
        return 2;
    }
    return write_model(&spec, argv[optind]);
}
