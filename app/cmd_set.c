/*
 * /set: every setting that may change while the program runs, with its range and where its value is
 * from.
 */
#include "app/commands.h"

#include <stdio.h>

/* Names that other programs' users type. */
static const struct {
    const char *said, *name;
} other_names[] = {
    {"temperature", "temp"}, {"num-predict", "max-tokens"},
    {"num-ctx", "ctx"},      {"repetition-penalty", "repeat-penalty"},
    {"colour", "color"},     {"typical-p", "typical"},
};

static const char *source_name(enum option_source source)
{
    static const char *const names[] = {
        [OPTION_FROM_DEFAULT] = "default", [OPTION_FROM_MODEL] = "model file",
        [OPTION_FROM_CONFIG] = "config",   [OPTION_FROM_ENV] = "environment",
        [OPTION_FROM_COMMAND] = "flag",    [OPTION_FROM_SET] = "set",
    };
    return names[source];
}

static void format_value(const struct app *app, const struct option *row, char *out, size_t n_bytes)
{
    options_format(app->options, row->name, out, n_bytes);
    if (!out[0])
        (void)snprintf(out, n_bytes, "%s", strcmp(row->name, "seed") == 0 ? "random" : "-");
}

static void list_settings(struct app *app)
{
    struct strbuf text = {0};
    for (size_t i = 0; i < options_count(app->options); i++) {
        const struct option *row = options_row(app->options, i);
        char value[120];
        if (!(row->places & OPTION_BY_SET))
            continue;
        format_value(app, row, value, sizeof(value));
        strbuf_addf(&text, "%s%-18s %-12s %s", text.n_bytes > 0 ? "\n" : "", row->name, value,
                    source_name(options_source(app->options, row->name)));
    }
    app->ui.ops->notice(&app->ui, TONE_PLAIN, strbuf_str(&text));
    strbuf_finish(&text);
}

static void explain(struct app *app, const struct option *row)
{
    char value[400], range[300];
    format_value(app, row, value, sizeof(value));
    option_describe(row, range, sizeof(range));
    ui_notice(&app->ui, TONE_PLAIN, "%s = %s (%s)\n%s\ntakes %s", row->name, value,
              source_name(options_source(app->options, row->name)), row->help, range);
}

/* The row that a person means; the name is cut at the first blank or '='. */
static const struct option *find_row(const struct app *app, const char *said)
{
    char name[64];
    (void)snprintf(name, sizeof(name), "%s", said); /* a longer one is no name */
    for (char *p = name; *p; p++)
        if (*p == '_')
            *p = '-';
    for (size_t i = 0; i < sizeof(other_names) / sizeof(other_names[0]); i++)
        if (strcmp(name, other_names[i].said) == 0)
            return options_find(app->options, other_names[i].name);
    return options_find(app->options, name);
}

static bool change(struct app *app, const struct option *row, const char *value)
{
    struct bn_error err;
    if (!(row->places & OPTION_BY_SET)) {
        ui_notice(&app->ui, TONE_ERROR, "%s is fixed at start; restart with --%s %s", row->name,
                  row->name, row->kind == OPTION_FLAG ? "" : value);
        return false;
    }
    const bool ok = strcmp(value, "default") == 0 || (row->repeats && strcmp(value, "off") == 0)
                        ? options_reset(app->options, row->name, &err)
                        : options_set(app->options, row->name, value, OPTION_FROM_SET, &err);
    if (!ok) {
        ui_notice(&app->ui, TONE_ERROR, "%s; unchanged", err.text);
        return false;
    }
    char now[400];
    format_value(app, row, now, sizeof(now));
    ui_notice(&app->ui, TONE_PLAIN, "%s = %s", row->name, now);
    return true;
}

bool cmd_set(struct app *app, struct bn_str args)
{
    static const struct bn_str prefix = {"parameter ", 10};
    struct strbuf line = {0};
    if (bn_str_starts(args, prefix))
        args = (struct bn_str){args.ptr + prefix.n_bytes, args.n_bytes - prefix.n_bytes};
    if (args.n_bytes == 0) {
        list_settings(app);
        return true;
    }
    strbuf_add_str(&line, args);
    char *value = line.ptr + strcspn(line.ptr, " \t=");
    if (*value)
        *value++ = 0;
    value += strspn(value, " \t=");
    const struct option *row = find_row(app, line.ptr);
    bool ok = row != NULL;
    if (!row)
        ui_notice(&app->ui, TONE_ERROR, "there is no setting '%.60s'; /set lists them", line.ptr);
    else if (*value)
        ok = change(app, row, value);
    else
        explain(app, row);
    strbuf_finish(&line);
    return ok;
}
