/*
 * Runs a model on one device and writes the results as bytes, for run_on_gpu.sh:
 *
 *   gpu_run probe
 *       prints the GPU, or why it cannot be used (exit status 1)
 *   gpu_run MODEL cpu|cuda N_PROMPT N_TOKENS OUT [no_graph] [no_early_launch]
 *       evaluates N_PROMPT ids in one pass, decodes N_TOKENS greedily, and then evaluates a few
 *       passes of 2 to 33 ids. Two runs of one model write the same bytes on every device:
 *         OUT.logits  all logits of the prompt as floats, (N_PROMPT, n_vocab)
 *         OUT.tokens  a line for each later row: its step, then ids and logit bits of the best
 *
 * The ids of the prompt are pseudo-random, because a generated model has no useful vocabulary.
 */
#include "engine/base/clock.h"
#include "engine/base/memory.h"
#include "engine/cpu/cpu_backend.h"
#include "engine/cuda/cuda_backend.h"
#include "engine/engine.h"
#include "engine/file_gguf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_BEST 8     /* candidates of a row that are written */
#define MAX_ROWS 512 /* rows of a pass */
#define N_CTX 8192

struct run {
    const struct backend_ops *ops;
    struct backend *backend;
    struct seq *seq;
    size_t n_vocab, n_steps;
    uint64_t random;
    FILE *tokens;
};

static int fail(const char *what, const struct bn_error *err)
{
    fprintf(stderr, "gpu_run: %s: %s\n", what, err->text);
    return 1;
}

static int32_t next_id(struct run *r)
{
    r->random = r->random * 6364136223846793005u + 1442695040888963407u;
    return (int32_t)((r->random >> 33) % r->n_vocab);
}

/* Evaluates n ids and returns the rows of all, with room for `cap` candidates each. Free *cands
 * with mem_free. */
static bool eval(struct run *r, const int32_t *ids, size_t n, struct head_request head, size_t cap,
                 struct head_row *rows, struct head_cand **cands, struct bn_error *err)
{
    uint64_t n_bytes;
    *cands = mem_alloc(n * cap, sizeof **cands);
    if (!*cands)
        return bn_fail(err, BN_ENOMEM, "no memory for %zu rows", n);
    for (size_t i = 0; i < n; i++)
        rows[i] = (struct head_row){*cands + i * cap, cap, 0};
    struct eval_item item = {r->seq, ids, n, n, head, rows};
    return r->ops->eval(r->backend, &item, 1, NULL, &n_bytes, err);
}

/* Writes the logits of the prompt; *next is the best id of the last row. */
static bool run_prompt(struct run *r, size_t n, const char *out, int32_t *next,
                       struct bn_error *err)
{
    static struct head_row rows[MAX_ROWS];
    int32_t ids[MAX_ROWS];
    struct head_cand *cands = NULL;
    char path[1000];
    (void)snprintf(path, sizeof path, "%s.logits", out);
    FILE *file = fopen(path, "wb");
    for (size_t i = 0; i < n; i++)
        ids[i] = next_id(r);
    bool ok = file || bn_fail(err, BN_EIO, "%s cannot be written", path);
    ok = ok &&
         eval(r, ids, n, (struct head_request){.kind = HEAD_ALL}, r->n_vocab, rows, &cands, err);
    for (size_t i = 0; ok && i < n * r->n_vocab; i++)
        if (fwrite(&cands[i].logit, sizeof cands[i].logit, 1, file) != 1)
            ok = bn_fail(err, BN_EIO, "%s cannot be written", path);
    *next = 0;
    for (size_t id = 1; ok && id < r->n_vocab; id++)
        if (rows[n - 1].cands[id].logit > rows[n - 1].cands[*next].logit)
            *next = (int32_t)id;
    if (file && fclose(file) != 0 && ok)
        ok = bn_fail(err, BN_EIO, "%s cannot be written", path);
    mem_free(cands);
    return ok;
}

/* Evaluates n ids and writes the best candidates of each row. The first id is *next, which becomes
 * the best one of the last row. */
static bool run_step(struct run *r, size_t n, int32_t *next, struct bn_error *err)
{
    static struct head_row rows[MAX_ROWS];
    int32_t ids[MAX_ROWS];
    struct head_cand *cands = NULL;
    for (size_t i = 0; i < n; i++)
        ids[i] = i == 0 ? *next : next_id(r);
    const bool ok = eval(r, ids, n, (struct head_request){.kind = HEAD_TOP, .k = N_BEST}, N_BEST,
                         rows, &cands, err);
    for (size_t i = 0; ok && i < n; i++) {
        fprintf(r->tokens, "%zu", r->n_steps);
        for (size_t j = 0; j < rows[i].n; j++) {
            uint32_t bits;
            memcpy(&bits, &rows[i].cands[j].logit, sizeof bits);
            fprintf(r->tokens, " %d:%08x", (int)rows[i].cands[j].id, (unsigned)bits);
        }
        fprintf(r->tokens, "\n");
        *next = rows[i].cands[0].id;
    }
    r->n_steps++;
    mem_free(cands);
    return ok;
}

static bool run_all(struct run *r, size_t n_prompt, size_t n_tokens, const char *out,
                    struct bn_error *err)
{
    static const size_t passes[] = {2, 7, 16, 33};
    int32_t next;
    const double start = clock_seconds();
    if (!run_prompt(r, n_prompt, out, &next, err))
        return false;
    const double decode = clock_seconds();
    for (size_t i = 0; i < n_tokens; i++)
        if (!run_step(r, 1, &next, err))
            return false;
    const double end = clock_seconds();
    for (size_t i = 0; i < sizeof passes / sizeof passes[0]; i++)
        if (!run_step(r, passes[i], &next, err))
            return false;
    printf("%s\nprompt %zu in %.3f s with all logits, %zu tokens in %.3f s: %.1f tokens/s\n",
           r->ops->info(r->backend)->text, n_prompt, decode - start, n_tokens, end - decode,
           (double)n_tokens / (end - decode));
    return true;
}

static int probe(void)
{
    const struct backend_config cfg = {0};
    char text[160];
    const bool ok = cuda_backend_ops.probe(&cfg, text, sizeof text);
    printf("%s\n", text);
    return ok ? 0 : 1;
}

static int run(char **argv, struct backend_config cfg)
{
    const size_t n_prompt = strtoul(argv[3], NULL, 10), n_tokens = strtoul(argv[4], NULL, 10);
    const struct backend_control control = {0};
    const struct model_config model_cfg = {.i2s_layout = BN_I2S_A};
    struct run r = {.ops = strcmp(argv[2], "cuda") == 0 ? &cuda_backend_ops : &cpu_backend_ops,
                    .random = 21};
    struct bn_error err;
    struct bn_file *file = NULL;
    struct model *model = NULL;
    char path[1000];
    bool ok = n_prompt >= 1 && n_prompt <= MAX_ROWS && n_tokens <= N_CTX - 2 * MAX_ROWS;
    ok = ok || bn_fail(&err, BN_EARG, "%zu ids and %zu tokens are too many", n_prompt, n_tokens);
    ok = ok && bn_file_open(argv[1], &file, &err) &&
         model_open(bn_file_gguf(file), &model_cfg, &model, &err) &&
         r.ops->open(model, &cfg, &control, &r.backend, &err) &&
         r.ops->seq_open(r.backend, N_CTX, &r.seq, &err);
    if (ok) {
        r.n_vocab = model->hp.n_vocab;
        (void)snprintf(path, sizeof path, "%s.tokens", argv[5]);
        r.tokens = fopen(path, "w");
        ok = r.tokens ? run_all(&r, n_prompt, n_tokens, argv[5], &err)
                      : bn_fail(&err, BN_EIO, "%s cannot be written", path);
        if (r.tokens && fclose(r.tokens) != 0 && ok)
            ok = bn_fail(&err, BN_EIO, "%s cannot be written", path);
    }
    r.ops->seq_close(r.seq);
    r.ops->close(r.backend);
    model_close(model);
    bn_file_close(file);
    return ok ? 0 : fail(argv[2], &err);
}

int main(int argc, char **argv)
{
    struct backend_config cfg = {.n_ubatch = MAX_ROWS};
    if (argc == 2 && strcmp(argv[1], "probe") == 0)
        return probe();
    if (argc < 6) {
        fprintf(stderr,
                "usage: gpu_run probe | MODEL cpu|cuda N_PROMPT N_TOKENS OUT [SWITCH...]\n");
        return 2;
    }
    for (int i = 6; i < argc; i++)
        if (strcmp(argv[i], "no_graph") == 0)
            cfg.no_graph = true;
        else if (strcmp(argv[i], "no_early_launch") == 0)
            cfg.no_early_launch = true;
    return run(argv, cfg);
}
