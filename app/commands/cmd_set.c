/*
 * /set: lists, explains and changes the settings that may change while the program runs.
 */
#include "app/commands/commands.h"

#include "app/chat/thinking.h"
#include "app/options/chat_options.h"

#include <stdio.h>

#define SYSTEM_NOTICE                                                                              \
    "/system shows the system message, /system TEXT replaces it, /system off removes it"

#define RANDOM_SEED "random" /* shown if no seed is set; /set accepts it, too */

static bool is_seed(const struct option *row)
{
    return strcmp(row->name, "seed") == 0;
}

/* The effective value of a setting that was never set and has no default in the table. */
static const char *unset_value(const struct command_host *host, const struct option *row)
{
    if (is_seed(row))
        return RANDOM_SEED;
    if (row->repeats)
        return "off"; /* the word with which /set removes all values; "none" would be a value */
    if (strcmp(row->name, "overflow") == 0)
        return host->chat->overflow == OVERFLOW_DROP ? "drop" : "stop";
    if (strcmp(row->name, "stats") == 0)
        return host->is_interactive ? "on" : "off";
    return row->kind == OPTION_FLAG ? "off" : "none";
}

static void format_value(const struct command_host *host, const struct option *row, char *out,
                         size_t n_bytes)
{
    options_format(host->options, row->name, out, n_bytes);
    if (!out[0])
        (void)snprintf(out, n_bytes, "%s", unset_value(host, row));
    const size_t n_ctx = chat_n_ctx(host->chat); /* --ctx 0: chosen when the model was loaded */
    if (strcmp(row->name, "ctx") == 0 && strcmp(out, "0") == 0 && n_ctx > 0)
        (void)snprintf(out, n_bytes, "%zu", n_ctx);
}

/* greedy and temp can contradict each other: the one that was set last, or in the stronger place,
 * has an effect (chat_options_is_greedy). Returns a remark about the other one, or "". */
static const char *override_remark(const struct options *o, const struct option *row)
{
    const bool is_greedy = chat_options_is_greedy(o);
    if (strcmp(row->name, "temp") == 0 && is_greedy && options_real(o, "temp") > 0)
        return "; no effect: greedy is on";
    if (strcmp(row->name, "greedy") == 0 && options_flag(o, "greedy") && !is_greedy)
        return "; no effect: temp overrides it";
    if (strcmp(row->name, "greedy") == 0 && !is_greedy && options_real(o, "temp") <= 0)
        return "; temp 0 has the same effect";
    return "";
}

static void list_settings(struct command_host *host)
{
    struct strbuf text = {0};
    strbuf_addf(&text, "%-17s %-7s %-10s %s\n", "setting", "value", "from", "takes");
    for (size_t i = 0; i < options_count(host->options); i++) {
        const struct option *row = options_row(host->options, i);
        char value[120], range[120]; /* longer texts are cut */
        if (!(row->places & OPTION_BY_SET))
            continue;
        format_value(host, row, value, sizeof(value));
        option_describe(row, range, sizeof(range));
        strbuf_addf(&text, "%-17s %-7s %-10s %s%s\n", row->name, value,
                    option_source_name(options_source(host->options, row->name)), range,
                    override_remark(host->options, row));
    }
    strbuf_add_text(&text,
                    "/set NAME explains a setting; /info shows the values that are fixed at start");
    host->ui->ops->notice(host->ui, TONE_TABLE, strbuf_str(&text));
    strbuf_finish(&text);
}

/* The system message is an option of the program, but the chat changes it by a command. */
static bool is_system(const struct option *row)
{
    return strcmp(row->name, "system") == 0;
}

static void explain(struct command_host *host, const struct option *row)
{
    char value[400], range[300];
    if (row->places == 0) { /* for one run, such as --help: it has no value to show */
        ui_notice(host->ui, TONE_PLAIN, "--%s is an option of the command line, not a setting:\n%s",
                  row->name, row->help);
        return;
    }
    format_value(host, row, value, sizeof(value));
    option_describe(row, range, sizeof(range));
    struct strbuf text = {0};
    strbuf_addf(&text, "%s = %s (%s)%s\n%s\ntakes %s", row->name, value,
                option_source_name(options_source(host->options, row->name)),
                override_remark(host->options, row), row->help, range);
    if (!(row->places & OPTION_BY_SET))
        strbuf_add_text(&text, "; fixed at start");
    else if (row->repeats)
        strbuf_addf(&text, "; /set %s %s adds one, /set %s off removes all", row->name, range,
                    row->name);
    host->ui->ops->notice(host->ui, TONE_PLAIN, strbuf_str(&text));
    strbuf_finish(&text);
}

static void show_unknown(struct command_host *host, const char *name)
{
    char near[OPTION_NEAR_BYTES];
    if (options_near(host->options, bn_str_of(name), OPTION_BY_SET, near))
        ui_notice(host->ui, TONE_ERROR, "there is no setting '%.60s' - did you mean %s?", name,
                  near);
    else
        ui_notice(host->ui, TONE_ERROR, "there is no setting '%.60s'; /set lists them", name);
}

/* Warn if a setting of thoughts has no effect with this template. */
static void warn_of_thinking(struct command_host *host, const struct option *row)
{
    const bool is_think = strcmp(row->name, "think") == 0;
    if (!is_think && strcmp(row->name, "think-budget") != 0)
        return;
    const struct thinking t = thinking_of(host->chat->model, host->options);
    if (strcmp(t.value, "none") == 0)
        ui_notice(host->ui, TONE_WARNING,
                  "the chat template has no thoughts, so this has no effect");
    else if (is_think && !t.has_switch)
        ui_notice(host->ui, TONE_WARNING,
                  "the chat template has no switch for thoughts, so this has no effect");
}

bool command_assign(const struct command_host *host, struct options *o, const char *name,
                    const char *value, struct bn_error *err)
{
    const struct option *row = options_find(o, name);
    const bool resets = strcmp(value, "default") == 0 ||
                        (row->repeats && strcmp(value, "off") == 0) ||
                        (is_seed(row) && strcmp(value, RANDOM_SEED) == 0);
    if (resets)
        return options_reset(o, row->name, err);
    struct strbuf copy = {0};
    strbuf_add_text(&copy, value);
    char *text = copy.ptr;
    bool ok = !copy.failed || bn_fail(err, BN_ENOMEM, "out of memory");
    if (ok)
        (void)option_unquote(&text, 0); /* a value without quotes is used as it is */
    if (ok && strcmp(row->name, "logit-bias") == 0)
        ok = chat_options_check_bias(text, host->chat->model->tokenizer, err);
    ok = ok && options_set(o, name, text, OPTION_FROM_SET, err);
    strbuf_finish(&copy);
    return ok;
}

/* `name` is that of the row, perhaps with "no-" before it. */
static bool change(struct command_host *host, const struct option *row, const char *name,
                   const char *value)
{
    struct bn_error err;
    if (is_system(row))
        return command_fail(host, SYSTEM_NOTICE);
    if (!(row->places & OPTION_BY_SET)) {
        const bool has_value = row->kind != OPTION_FLAG;
        ui_notice(host->ui, TONE_ERROR, "%s is fixed at start; restart with --%s%s%s", name, name,
                  has_value ? " " : "", has_value ? value : "");
        return false;
    }
    if (!command_assign(host, host->options, name, value, &err)) {
        ui_notice(host->ui, TONE_ERROR, "%s; unchanged", err.text);
        return false;
    }
    if (strcmp(row->name, "color") == 0 && host->ui->ops->is_terminal) {
        host->painter = host->ui->ops->name; /* a painter chooses its colours when it opens */
        return true;                         /* switch_painter shows the value */
    }
    char now[400];
    format_value(host, row, now, sizeof(now));
    size_t n_texts = 0;
    if (row->repeats)
        (void)options_list(host->options, row->name, &n_texts);
    if (n_texts > 1) /* the user may have wanted to replace the first one */
        ui_notice(host->ui, TONE_PLAIN, "%s = %s; /set %s off removes all", row->name, now,
                  row->name);
    else
        ui_notice(host->ui, TONE_PLAIN, "%s = %s", row->name, now);
    warn_of_thinking(host, row);
    return true;
}

bool cmd_set(struct command_host *host, struct bn_str args)
{
    static const struct bn_str prefix = {"parameter ", 10}; /* ollama: /set parameter NAME VALUE */
    struct strbuf line = {0};
    if (bn_str_starts(args, prefix))
        args = (struct bn_str){args.ptr + prefix.n_bytes, args.n_bytes - prefix.n_bytes};
    if (args.n_bytes == 0) {
        list_settings(host);
        return true;
    }
    strbuf_add_str(&line, args);
    if (line.failed) {
        strbuf_finish(&line);
        return command_fail(host, "out of memory; unchanged");
    }
    char *value = line.ptr + strcspn(line.ptr, " \t=");
    if (*value)
        *value++ = 0;
    value += strspn(value, " \t=");
    const char *name = option_translate_name(line.ptr);
    const struct option *row = options_find(host->options, name);
    bool ok = row != NULL;
    if (!row)
        show_unknown(host, line.ptr);
    else if (*value)
        ok = change(host, row, name, value);
    else if (is_system(row))
        ui_notice(host->ui, TONE_PLAIN, SYSTEM_NOTICE);
    else
        explain(host, row);
    strbuf_finish(&line);
    return ok;
}
