/*
 * A hostile saved chat. It must be refused with a message and an empty transcript, or the
 * conversation that was read must be the same after writing and reading it again.
 *
 * The vocabulary has one token for each byte, so that token ids can encode any text. The input goes
 * through a file because store.h reads files only.
 */
#include "app/chat/conversation/store.h"
#include "tests/fuzz/fuzz.h"
#include "tests/tokenizer/vocab_builder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void check(bool ok)
{
    if (!ok)
        abort();
}

static void check_same(const struct transcript_state *a, const struct transcript_state *b)
{
    check(a->n == b->n && a->n_skipped == b->n_skipped && bn_str_equal(a->system, b->system));
    for (size_t i = 0; i < a->n; i++) {
        const struct answer *x = &a->items[i]->answer, *y = &b->items[i]->answer;
        check(bn_str_equal(a->items[i]->user, b->items[i]->user));
        check(bn_str_equal(a->items[i]->typed, b->items[i]->typed));
        check(bn_str_equal(a->items[i]->files, b->items[i]->files));
        check(x->finish == y->finish && x->n_ids == y->n_ids);
        check(x->n_ids == 0 || memcmp(x->ids, y->ids, x->n_ids * sizeof(*x->ids)) == 0);
        check(bn_str_equal(x->text, y->text));
    }
}

static void check_session(const struct store *store, const char *path)
{
    struct transcript first = {0}, second = {0};
    struct store_reading reading;
    struct bn_error err = {0};
    if (!store_read(store, path, &first, &reading, &err)) {
        check(err.code == BN_EFORMAT && err.text[0] && first.now.n == 0);
        return;
    }
    check(reading.n_retokenised <= reading.n_answers && reading.n_answers <= first.now.n);
    check(store_write(store, &first.now, path, &err));
    check(store_read(store, path, &second, &reading, &err));
    check_same(&first.now, &second.now);
    transcript_finish(&first);
    transcript_finish(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    static struct tokenizer *t; /* constant, so opened once */
    const struct made_vocab made = {.model = "gpt2", .pre = "gpt-2"};
    struct bn_error err;
    char path[64] = "/tmp/fuzz-session-XXXXXX";
    if (!t)
        t = made_open(&made, NULL, &err);
    check(t != NULL);
    const struct store store = {.tokenizer = t, .model_name = "m"};
    const int fd = mkstemp(path);
    FILE *f = fd >= 0 ? fdopen(fd, "wb") : NULL;
    check(f && fwrite(bytes, 1, n_bytes, f) == n_bytes && fclose(f) == 0);
    check_session(&store, path);
    (void)unlink(path);
    return 0;
}
