/*
 * What several commands share: see commands.h.
 */
#include "app/commands/commands.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Names of the same settings in other programs. */
static const struct {
    const char *said, *name;
} other_names[] = {
    {"temperature", "temp"}, {"num-predict", "max-tokens"},
    {"num-ctx", "ctx"},      {"repetition-penalty", "repeat-penalty"},
    {"colour", "color"},     {"typical-p", "typical"},
};

void command_write_files(struct command_host *host)
{
    if (!chat_write_files(host->chat))
        host->write_failed = true;
}

bool command_number(struct command_host *host, struct bn_str args, size_t fallback, size_t max,
                    size_t *out)
{
    size_t n = 0;
    if (args.n_bytes == 0) {
        *out = fallback;
        return true;
    }
    for (size_t i = 0; i < args.n_bytes; i++) {
        if (args.ptr[i] < '0' || args.ptr[i] > '9' || n > max) {
            n = 0;
            break;
        }
        n = 10 * n + (size_t)(args.ptr[i] - '0');
    }
    if (n >= 1 && n <= max) {
        *out = n;
        return true;
    }
    if (max == 0)
        ui_notice(host->ui, TONE_ERROR, "there is nothing to count");
    else if (max > INT32_MAX)
        ui_notice(host->ui, TONE_ERROR, "expected a whole number of at least 1");
    else
        ui_notice(host->ui, TONE_ERROR, "expected a whole number from 1 to %zu", max);
    return false;
}

const char *command_setting(const char *said)
{
    char name[64];
    (void)snprintf(name, sizeof(name), "%s", said); /* cut: no setting has a name that long */
    for (char *p = name; *p; p++)
        if (*p == '_')
            *p = '-';
    for (size_t i = 0; i < sizeof(other_names) / sizeof(other_names[0]); i++)
        if (strcmp(name, other_names[i].said) == 0)
            return other_names[i].name;
    return said;
}

bool command_ends_with(struct bn_str s, const char *end)
{
    const size_t n = strlen(end);
    return s.n_bytes > n && memcmp(s.ptr + s.n_bytes - n, end, n) == 0;
}

bool command_may_write(struct command_host *host, const char *name, struct bn_str *path)
{
    struct strbuf text = {0};
    if (command_ends_with(*path, "!")) {
        path->n_bytes--;
        return true;
    }
    strbuf_add_str(&text, *path);
    const bool is_there = access(strbuf_text(&text), F_OK) == 0;
    if (is_there)
        ui_notice(host->ui, TONE_ERROR, "%s is there already; /%s %s! replaces it",
                  strbuf_text(&text), name, strbuf_text(&text));
    strbuf_finish(&text);
    return !is_there;
}
