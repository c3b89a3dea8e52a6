/*
 * bitnet-inspect: shows the contents of a model file and runs single stages of the model.
 *
 * This file finds the verb (the subcommand), checks its options and runs it.
 */
#include "app/inspect/inspect.h"
#include "app/common/file/mapped_file.h"

#include <string.h>

static const struct inspect_verb *find_verb(const char *name)
{
    for (const struct inspect_verb *v = inspect_verbs; v->name; v++)
        if (strcmp(v->name, name) == 0)
            return v;
    return NULL;
}

static enum exit_code print_help(struct options *o, const struct inspect_verb *verb)
{
    if (verb)
        printf("Usage: " INSPECT " %s %s [OPTIONS]\n%s\n", verb->name, verb->usage, verb->help);
    else
        printf("Usage: " INSPECT " VERB [OPTIONS] [MODEL.gguf] [FILE]\n\n");
    for (const struct inspect_verb *v = inspect_verbs; !verb && v->name; v++)
        printf("  " INSPECT " %s %s\n      %s\n", v->name, v->usage, v->help);
    options_print_help(o, stdout, OPTION_HELP_ALL, verb ? verb->options : NULL);
    return report_flush(INSPECT);
}

/* Check the number of words, and that the verb accepts each option of the command line. A variable
 * of the environment is for all verbs, so one that this verb does not use is no error. */
static enum exit_code check_usage(struct options *o, const struct inspect_verb *verb,
                                  size_t n_words)
{
    for (size_t i = 0; i < options_count(o); i++) {
        const char *name = options_row(o, i)->name;
        if (options_source(o, name) == OPTION_FROM_COMMAND &&
            !options_list_has(verb->options, name)) {
            char spelling[100];
            option_spelling(options_row(o, i), spelling, sizeof(spelling));
            return report_fail(INSPECT, EXIT_USAGE, "%s does not accept %s", verb->name, spelling);
        }
    }
    if (n_words < verb->n_words_min || n_words > verb->n_words_max)
        return report_fail(INSPECT, EXIT_USAGE, "expected: %s %s", verb->name, verb->usage);
    return EXIT_DONE;
}

static enum exit_code run_verb(struct options *o)
{
    size_t n_words;
    const char *const *words = options_words(o, &n_words);
    const struct inspect_verb *verb = n_words ? find_verb(words[0]) : NULL;
    if (options_flag(o, "help"))
        return print_help(o, verb);
    if (n_words > 0 && strcmp(words[0], "help") == 0)
        return print_help(o, n_words > 1 ? find_verb(words[1]) : NULL);
    if (options_flag(o, "version")) {
        printf(INSPECT " %s\n", report_version());
        return report_flush(INSPECT);
    }
    if (!n_words)
        return report_fail(INSPECT, EXIT_USAGE, "no verb given (--help lists them)");
    if (!verb)
        return report_fail(INSPECT, EXIT_USAGE, "unknown verb '%s' (--help lists them)", words[0]);
    enum exit_code code = check_usage(o, verb, n_words - 1);
    if (code != EXIT_DONE)
        return code;
    struct inspect in = {.options = o, .words = words + 1, .n_words = n_words - 1};
    code = verb->run(&in);
    inspect_close(&in);
    /* After an error, a failed flush is not reported too: one error line is enough. */
    return code == EXIT_DONE ? report_flush(INSPECT) : code;
}

int main(int argc, char **argv)
{
    struct options *o;
    struct bn_error err;
    mapped_file_watch(INSPECT);
    if (!options_open(inspect_tables, n_inspect_tables, &o, &err))
        return report_error(INSPECT, STAGE_RUN, &err);
    const enum exit_code code =
        options_parse(o, argc, argv, &err) && model_args_environment(o, &err)
            ? run_verb(o)
            : report_error(INSPECT, STAGE_RUN, &err);
    options_close(o);
    return code;
}
