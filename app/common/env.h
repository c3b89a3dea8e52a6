/*
 * The environment variables that the program uses. No other file calls getenv.
 */
#ifndef APP_ENV_H
#define APP_ENV_H

enum env_var {
    ENV_MODEL,   /* BITNET_CHAT_MODEL */
    ENV_CONFIG,  /* BITNET_CHAT_CONFIG */
    ENV_PRIVATE, /* BITNET_CHAT_PRIVATE */
    ENV_THREADS, /* BITNET_CHAT_THREADS */
    ENV_OMP_NUM_THREADS,
    ENV_NO_COLOR,
    ENV_CLICOLOR_FORCE,
    ENV_TERM,
    ENV_COLORTERM,
    ENV_COLUMNS,
    ENV_VISUAL,
    ENV_EDITOR,
    ENV_HOME,
    ENV_PATH,
    ENV_TMPDIR,
    ENV_DISPLAY,
    ENV_WAYLAND_DISPLAY,
    ENV_XDG_CONFIG_HOME,
    ENV_XDG_STATE_HOME,
    ENV_XDG_DATA_HOME,
    ENV_XDG_CACHE_HOME,
    ENV_N
};

const char *env_name(enum env_var var); /* "HOME" for ENV_HOME; static text */
/* NULL when the variable is unset or empty. The text is valid until the variable changes. */
const char *env_get(enum env_var var);
/* Remove the variable. Call it on the main thread before other threads start. */
void env_unset(enum env_var var);
/* Set the variable LC_CTYPE, or LC_ALL if that one is set and not empty, for Readline and child
 * processes. Call it on the main thread before other threads start. */
void env_set_ctype(const char *locale);

#endif
