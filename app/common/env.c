/*
 * Environment variables: see env.h.
 */
#include "app/common/env.h"

#include <stdlib.h>

static const char *const env_names[ENV_N] = {
    [ENV_MODEL] = "BITNET_CHAT_MODEL",
    [ENV_CONFIG] = "BITNET_CHAT_CONFIG",
    [ENV_PRIVATE] = "BITNET_CHAT_PRIVATE",
    [ENV_THREADS] = "BITNET_CHAT_THREADS",
    [ENV_OMP_NUM_THREADS] = "OMP_NUM_THREADS",
    [ENV_NO_COLOR] = "NO_COLOR",
    [ENV_CLICOLOR_FORCE] = "CLICOLOR_FORCE",
    [ENV_TERM] = "TERM",
    [ENV_COLORTERM] = "COLORTERM",
    [ENV_COLUMNS] = "COLUMNS",
    [ENV_VISUAL] = "VISUAL",
    [ENV_EDITOR] = "EDITOR",
    [ENV_HOME] = "HOME",
    [ENV_PATH] = "PATH",
    [ENV_TMPDIR] = "TMPDIR",
    [ENV_DISPLAY] = "DISPLAY",
    [ENV_WAYLAND_DISPLAY] = "WAYLAND_DISPLAY",
    [ENV_XDG_CONFIG_HOME] = "XDG_CONFIG_HOME",
    [ENV_XDG_STATE_HOME] = "XDG_STATE_HOME",
    [ENV_XDG_DATA_HOME] = "XDG_DATA_HOME",
    [ENV_XDG_CACHE_HOME] = "XDG_CACHE_HOME",
};

const char *env_name(enum env_var var)
{
    return env_names[var];
}

const char *env_get(enum env_var var)
{
    const char *value = getenv(env_names[var]);
    return value && *value ? value : NULL;
}

void env_unset(enum env_var var)
{
    (void)unsetenv(env_names[var]); /* fails only for invalid names */
}

void env_set_ctype(const char *locale)
{
    const char *all = getenv("LC_ALL"); /* has priority over LC_CTYPE */
    /* On failure (out of memory) Readline and child processes use the locale from before. */
    (void)setenv(all && *all ? "LC_ALL" : "LC_CTYPE", locale, 1);
}
