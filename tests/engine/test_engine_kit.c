/*
 * Shared helpers of the engine tests, see test_engine_kit.h.
 */
#include "tests/engine/test_engine_kit.h"

#include "engine/base/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* clang's OpenMP runtime keeps the memory of former larger teams until the process ends, without a
 * pointer to it. The leak checker calls this function. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libomp.so";
}

static size_t thin = 1; /* only one of this many cases runs */
static size_t n_cases;

void kit_read_arguments(int argc, char **argv)
{
    if (argc == 1)
        return;
    char *end = NULL;
    thin = argc == 3 && strcmp(argv[1], "--thin") == 0 ? strtoul(argv[2], &end, 10) : 0;
    if (thin == 0 || *end != '\0') {
        (void)fprintf(stderr, "usage: %s [--thin N]\n", argv[0]);
        exit(2);
    }
}

bool kit_takes_case(void)
{
    return n_cases++ % thin == 0;
}

bool kit_isa_runs_here(const char *isa)
{
    const struct synth_spec spec = synth_preset("tiny");
    const struct bn_model_config cfg = {.isa = isa, .n_threads = 1};
    struct synth_model m;
    struct bn_model *model = NULL;
    struct bn_error err;
    if (!synth_open(&spec, &m, &err))
        fail_msg("%s", err.text);
    const bool ok = bn_model_open(m.file, &cfg, &model, &err);
    if (!ok)
        assert_int_equal(err.code, BN_EUNSUPPORTED); /* not BN_EARG: an unknown name */
    bn_model_close(model);
    synth_close(&m);
    return ok;
}

void kit_open(struct kit *kit, const struct synth_spec *spec, const struct bn_model_config *cfg)
{
    const struct bn_model_config defaults = {.n_threads = 2};
    const struct bn_session_config session_cfg = {0};
    struct bn_error err;
    *kit = (struct kit){0};
    if (!synth_open(spec, &kit->synth, &err) ||
        !bn_model_open(kit->synth.file, cfg ? cfg : &defaults, &kit->model, &err) ||
        !bn_session_open(kit->model, &session_cfg, &kit->session, &err))
        fail_msg("%s", err.text);
    kit->n_vocab = bn_model_info(kit->model)->n_vocab;
}

void kit_close(struct kit *kit)
{
    bn_session_close(kit->session);
    bn_model_close(kit->model);
    synth_close(&kit->synth);
}

struct bn_session *kit_session(const struct kit *kit, size_t n_ctx)
{
    const struct bn_session_config cfg = {.n_ctx = n_ctx};
    struct bn_session *s;
    struct bn_error err;
    if (!bn_session_open(kit->model, &cfg, &s, &err))
        fail_msg("%s", err.text);
    return s;
}

void kit_ids(int32_t *ids, size_t n, uint32_t seed)
{
    uint32_t x = seed * 2654435761u + 1; /* Numerical Recipes' generator */
    for (size_t i = 0; i < n; i++) {
        x = x * 1664525u + 1013904223u;
        ids[i] = (int32_t)(x >> 24);
    }
    ids[0] = 256;
}

struct head_row *kit_rows(const struct kit *kit, size_t n_rows)
{
    struct head_row *rows = mem_alloc(n_rows, sizeof *rows);
    assert_non_null(rows);
    for (size_t i = 0; i < n_rows; i++) {
        rows[i].cands = mem_alloc(kit->n_vocab, sizeof *rows[i].cands);
        rows[i].cap = kit->n_vocab;
        assert_non_null(rows[i].cands);
    }
    return rows;
}

void kit_free_rows(struct head_row *rows, size_t n_rows)
{
    for (size_t i = 0; i < n_rows; i++)
        mem_free(rows[i].cands);
    mem_free(rows);
}

void kit_append(const struct kit *kit, struct bn_session *s, const int32_t *ids, size_t n_ids,
                float *out)
{
    const struct head_request head = {.kind = HEAD_ALL};
    struct head_row *rows = kit_rows(kit, n_ids);
    struct bn_error err;
    if (!bn_session_eval(s, ids, n_ids, &head, rows, n_ids, NULL, &err))
        fail_msg("%s", err.text);
    for (size_t i = 0; i < n_ids; i++) {
        assert_int_equal(rows[i].n, kit->n_vocab);
        for (size_t id = 0; id < kit->n_vocab; id++) {
            assert_int_equal(rows[i].cands[id].id, id);
            out[i * kit->n_vocab + id] = rows[i].cands[id].logit;
        }
    }
    kit_free_rows(rows, n_ids);
}

float *kit_logits(const struct kit *kit, const int32_t *ids, size_t n_ids)
{
    struct bn_session *s = kit_session(kit, n_ids);
    float *out = mem_alloc(n_ids * kit->n_vocab, sizeof *out);
    assert_non_null(out);
    kit_append(kit, s, ids, n_ids, out);
    bn_session_close(s);
    return out;
}

float *kit_logits_of(const struct synth_spec *spec, const struct bn_model_config *cfg,
                     const int32_t *ids, size_t n_ids)
{
    struct kit kit;
    kit_open(&kit, spec, cfg);
    float *logits = kit_logits(&kit, ids, n_ids);
    kit_close(&kit);
    return logits;
}
