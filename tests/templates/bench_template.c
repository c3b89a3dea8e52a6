/*
 * Times the rendering of a long conversation: bench_template [FILE ...], where each file has a
 * template. Without a file it measures all built-in families. The conversation has 100 turns and a
 * last user message; each message has 290 bytes. Prints two times in microseconds, each the minimum
 * of 50 runs: rendering alone, and rendering with making the template values.
 */
#include "engine/base/clock.h"
#include "templates/template.h"

#include <stdio.h>
#include <stdlib.h>

#define N_TURNS 100
#define N_RUNS 50

static const char words[] =
    "The quick brown fox jumps over the lazy dog, and then it jumps again. "
    "Once would have been enough, but the fox does not count its jumps. "
    "\xc3\x84hnliches gilt f\xc3\xbcr den Hund.\n\n"
    "In short: the fox jumps and the dog does not move. "
    "A reader has now seen every letter at least once, and some more often.";

static struct template_value *push_message(struct template_arena *a, struct template_value *list,
                                           const char *role)
{
    struct template_value *m = template_dict(a);
    m = template_set(a, m, "role", template_string(a, bn_str_of(role)));
    m = template_set(a, m, "content", template_string(a, bn_str_of(words)));
    return template_push(a, list, m);
}

/* Seconds of one rendering. *with_values also includes the time to make the values. */
static double once(const struct template *t, double *with_values)
{
    struct bn_error err;
    struct template_output out;
    struct template_arena *const a = template_arena_open();
    const double start = clock_seconds();
    struct template_value *list = template_list(a);
    for (size_t i = 0; i < N_TURNS; i++)
        list = push_message(a, push_message(a, list, "user"), "assistant");
    const double made = clock_seconds();
    const struct template_input in = {.messages = push_message(a, list, "user"),
                                      .add_generation_prompt = true};
    if (!template_render(t, a, &in, &out, &err)) {
        fprintf(stderr, "%s\n", err.text);
        exit(EXIT_FAILURE);
    }
    const double end = clock_seconds();
    template_arena_close(a);
    *with_values = end - start;
    return end - made;
}

static void bench(const char *name, const struct template_config *cfg)
{
    struct bn_error err;
    struct template *t;
    double best = 1e9, best_all = 1e9;
    if (!template_open(cfg, &t, &err)) {
        fprintf(stderr, "%s: %s\n", name, err.text);
        exit(EXIT_FAILURE);
    }
    for (size_t i = 0; i < N_RUNS; i++) {
        double all;
        const double s = once(t, &all);
        best = s < best ? s : best;
        best_all = all < best_all ? all : best_all;
    }
    printf("%-60s %7.1f us, %7.1f us with making the values\n", name, best * 1e6, best_all * 1e6);
    template_close(t);
}

static void bench_file(const char *path)
{
    static char text[1 << 20]; /* a longer file is cut */
    FILE *const file = fopen(path, "rb");
    if (!file) {
        fprintf(stderr, "%s: cannot be read\n", path);
        exit(EXIT_FAILURE);
    }
    const size_t n = fread(text, 1, sizeof text, file);
    (void)fclose(file); /* read only */
    const struct template_config cfg = {
        .user_text = {text, n}, .bos_token = bn_str_of("<s>"), .eos_token = bn_str_of("</s>")};
    bench(path, &cfg);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        bench_file(argv[i]);
    for (const char *const *name = template_builtin_names(); argc == 1 && *name; name++) {
        const struct template_config cfg = {.choice = *name, .eos_token = bn_str_of("</s>")};
        bench(*name, &cfg);
    }
    return EXIT_SUCCESS;
}
