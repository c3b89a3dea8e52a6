/*
 * The choice of a device. Knows the names there are and the backends this build has; each backend
 * knows by itself whether it can run here.
 */
#include "engine/backend/backend.h"

#include "engine/cpu/cpu_backend.h"
#include "engine/cuda/cuda_backend.h"

#include <stdio.h>
#include <string.h>

/* More devices than any machine has; keeps the parser away from overflow. */
#define INDEX_MAX 1023

static const struct backend_ops *const backends[] = {
#ifdef BN_HAS_CUDA
    &cuda_backend_ops,
#endif
    &cpu_backend_ops,
    NULL,
};

/* Every name a user may write, and why a build may lack it. */
static const struct backend_name {
    const char *name, *missing;
} names[] = {
    {"cuda", "this build has no CUDA backend"},
    {"cpu", "this build has no CPU backend"},
};
#define N_NAMES (sizeof names / sizeof names[0])

const struct backend_ops *const *backend_list(void)
{
    return backends;
}

static const struct backend_ops *find_backend(const char *name)
{
    for (size_t i = 0; backends[i]; i++)
        if (strcmp(backends[i]->name, name) == 0)
            return backends[i];
    return NULL;
}

/* "cuda:1" is `name` with index 1; false if the text is another name or its index no number. */
static bool names_device(const char *device, const char *name, size_t *index)
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

bool backend_probe(const char *name, const struct backend_config *cfg, char *text,
                   size_t text_bytes)
{
    const struct backend_ops *ops = find_backend(name);
    if (ops)
        return ops->probe(cfg, text, text_bytes);
    const char *why = "no such device";
    for (size_t i = 0; i < N_NAMES; i++)
        if (strcmp(names[i].name, name) == 0)
            why = names[i].missing;
    (void)snprintf(text, text_bytes, "%s", why);
    return false;
}

const char *backend_name(size_t i)
{
    return i < N_NAMES ? names[i].name : NULL;
}

static bool choose_best(struct backend_config *cfg, const struct backend_ops **out,
                        struct bn_error *err)
{
    char text[160] = "";
    cfg->index = 0;
    for (size_t i = 0; i < N_NAMES; i++) {
        if (backend_probe(names[i].name, cfg, text, sizeof text)) {
            bn_log(&cfg->log, BN_LOG_DEBUG, "device %s: %s", names[i].name, text);
            *out = find_backend(names[i].name);
            return true;
        }
        bn_log(&cfg->log, BN_LOG_DEBUG, "device %s is not used: %s", names[i].name, text);
        if (find_backend(names[i].name))
            (void)snprintf(cfg->passed_over, sizeof cfg->passed_over, "%s is not used: %s",
                           names[i].name, text); /* cut */
    }
    return bn_fail(err, BN_EDEVICE, "no device can run here: %s", text);
}

bool backend_choose(const char *device, struct backend_config *cfg, const struct backend_ops **out,
                    struct bn_error *err)
{
    if (!device || strcmp(device, "auto") == 0)
        return choose_best(cfg, out, err);
    for (size_t i = 0; i < N_NAMES; i++) {
        size_t index;
        char text[160];
        if (!names_device(device, names[i].name, &index))
            continue;
        cfg->index = index;
        if (!backend_probe(names[i].name, cfg, text, sizeof text))
            return bn_fail(err, BN_EDEVICE, "device '%s' cannot be used: %s", device, text);
        *out = find_backend(names[i].name);
        return true;
    }
    return bn_fail(err, BN_EARG, "no device is called '%.40s' (auto, cpu, cuda, cuda:N)", device);
}
