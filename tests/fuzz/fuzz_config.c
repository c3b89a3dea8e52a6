/*
 * Reads any bytes as a config file, with every option of the chat. The file is accepted, or refused
 * with an error message. Each value that was set, formatted as text, is accepted again.
 */
#include "app/options/chat_options.h"
#include "app/options/config.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#define VALUE_BYTES 20000

static void count(void *ud, enum config_remark kind, const char *sentence)
{
    size_t *n = ud;
    (void)kind; /* warnings and errors */
    *n += strlen(sentence) > 0;
}

static void check_value(struct options *o, const struct option *row)
{
    char text[VALUE_BYTES];
    struct bn_error err;
    if (!options_given(o, row->name) || row->kind == OPTION_TEXT || row->repeats ||
        !(row->places & OPTION_IN_CONFIG))
        return;
    options_format(o, row->name, text, sizeof(text));
    if (!options_set(o, row->name, text, OPTION_FROM_CONFIG, &err))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    struct options *o;
    struct bn_error err = {0};
    size_t n_warned = 0;
    if (!chat_options_open(&o, &err))
        abort();
    const struct bn_str text = {(const char *)bytes, n_bytes};
    if (!config_apply(o, "config", text, count, &n_warned, &err) &&
        strncmp(err.text, "config:", 7) != 0)
        abort();
    if (n_warned > n_bytes)
        abort();
    for (size_t i = 0; i < options_count(o); i++)
        check_value(o, options_row(o, i));
    options_close(o);
    return 0;
}
