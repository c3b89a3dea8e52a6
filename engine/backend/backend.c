/*
 * The choice of a device: the names that a user may write, and the backends of this build. Each
 * backend itself tests whether it can run here.
 */
#include "engine/backend/backend.h"

#include "engine/base/utf8.h"
#include "engine/cpu/cpu_backend.h"
#include "engine/cuda/cuda_backend.h"

#include <stdio.h>
#include <string.h>

/* More devices than any machine has. The limit keeps parse_device from overflowing. */
#define INDEX_MAX 1023

/* The kinds of devices, best first. */
static const struct device_kind {
    const char *name;
    const struct backend_ops *ops; /* NULL: not in this build */
} kinds[] = {
#ifdef BN_HAS_CUDA
    {"cuda", &cuda_backend_ops},
#else
    {"cuda", NULL},
#endif
    {"cpu", &cpu_backend_ops},
};
#define N_KINDS (sizeof kinds / sizeof kinds[0])

const char *backend_name(size_t i)
{
    return i < N_KINDS ? kinds[i].name : NULL;
}

bool backend_probe(size_t i, const struct backend_config *cfg, char *text, size_t text_bytes)
{
    if (kinds[i].ops)
        return kinds[i].ops->probe(cfg, text, text_bytes);
    (void)snprintf(text, text_bytes, "this build has no CUDA backend");
    return false;
}

/* Parse "NAME" or "NAME:N" for the given name. False: another name, or a wrong N. */
static bool parse_device(const char *device, const char *name, size_t *index)
{
    const size_t n_bytes = strlen(name);
    *index = 0;
    if (strncmp(device, name, n_bytes) != 0)
        return false;
    const char *at = device + n_bytes;
    if (*at == '\0')
        return true;
    if (*at != ':' || at[1] == '\0')
        return false;
    for (at++; *at >= '0' && *at <= '9' && *index <= INDEX_MAX; at++)
        *index = *index * 10 + (size_t)(*at - '0');
    return *at == '\0' && *index <= INDEX_MAX;
}

static bool is_auto(const char *device)
{
    return !device || strcmp(device, "auto") == 0;
}

/* Record why "auto" skips kind i. */
static void pass_over(size_t i, struct backend_config *cfg, const char *why)
{
    bn_log(&cfg->log, BN_LOG_DEBUG, "device %s is not used: %s", kinds[i].name, why);
    if (!kinds[i].ops)
        return;
    /* 160 bytes hold "cuda is not used: " (18), 141 more and a terminator. */
    (void)snprintf(cfg->skip_reason, sizeof cfg->skip_reason, "%s is not used: %.141s",
                   kinds[i].name, why);
    utf8_drop_partial(cfg->skip_reason);
}

/* Set *out to the first kind from number `first` on that can run here. */
static bool choose_best(size_t first, struct backend_config *cfg, const struct backend_ops **out,
                        struct bn_error *err)
{
    char text[160] = "";
    cfg->index = 0;
    for (size_t i = first; i < N_KINDS; i++) {
        if (backend_probe(i, cfg, text, sizeof text)) {
            bn_log(&cfg->log, BN_LOG_DEBUG, "device %s: %s", kinds[i].name, text);
            *out = kinds[i].ops;
            return true;
        }
        pass_over(i, cfg, text);
    }
    return bn_fail(err, BN_EDEVICE, "no device can run here: %s", text);
}

bool backend_choose(const char *device, struct backend_config *cfg, const struct backend_ops **out,
                    struct bn_error *err)
{
    if (is_auto(device))
        return choose_best(0, cfg, out, err);
    for (size_t i = 0; i < N_KINDS; i++) {
        size_t index;
        char text[160];
        if (!parse_device(device, kinds[i].name, &index))
            continue;
        cfg->index = index;
        if (!backend_probe(i, cfg, text, sizeof text))
            return bn_fail(err, BN_EDEVICE, "device '%s' cannot be used: %s", device, text);
        *out = kinds[i].ops;
        return true;
    }
    return bn_fail(err, BN_EARG, "unknown device '%.40s', expected auto, cpu, cuda or cuda:N",
                   device);
}

bool backend_plan_model(const char *device, const struct model *m, struct backend_config *cfg,
                        const struct backend_ops **ops, struct backend_plan *plan,
                        struct bn_error *err)
{
    while (!(*ops)->plan(m, cfg, plan, err))
        if (err->code != BN_EUNSUPPORTED || !backend_use_next(device, err, cfg, ops))
            return false;
    return true;
}

bool backend_use_next(const char *device, const struct bn_error *err, struct backend_config *cfg,
                      const struct backend_ops **ops)
{
    struct bn_error ignored; /* *err is the reason that the user needs */
    struct backend_config next = *cfg;
    size_t i = 0;
    while (kinds[i].ops != *ops)
        i++;
    if (!is_auto(device) || i + 1 == N_KINDS)
        return false;
    pass_over(i, &next, err->text);
    if (!choose_best(i + 1, &next, ops, &ignored))
        return false;
    *cfg = next;
    return true;
}
