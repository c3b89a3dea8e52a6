/*
 * A hostile saved chat. It must be refused with a message and an empty transcript, or the
 * conversation that was read must be the same after writing and reading it again. What follows a
 * byte 0x1E is its journal, after a first line that fits the saved chat. The same holds for the
 * conversation with the turns of the journal, and appending to a journal gives the same as writing.
 *
 * The vocabulary has one token for each byte, so that token ids can encode any text. The input goes
 * through a file because store.h reads files only.
 */
#include "app/chat/conversation/store.h"
#include "engine/base/hash.h"
#include "tests/fuzz/fuzz.h"
#include "tests/tokenizer/vocab_builder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define JOURNAL_MARK 0x1E

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

static void write_bytes(const char *path, const void *head, size_t n_head, struct bn_str bytes)
{
    FILE *f = fopen(path, "wb");
    check(f && fwrite(head, 1, n_head, f) == n_head &&
          fwrite(bytes.ptr, 1, bytes.n_bytes, f) == bytes.n_bytes && fclose(f) == 0);
}

/* The journal of the file at `path`. */
static void write_journal(const char *path, struct bn_str file, struct bn_str lines,
                          uint64_t vocabulary)
{
    char name[80], head[200];
    const int n =
        snprintf(head, sizeof(head),
                 "{\"format\": \"bitnet-chat journal\", \"version\": 1, \"base\": \"%016llx\", "
                 "\"vocabulary\": \"%016llx\"}\n",
                 (unsigned long long)fnv1a_add_bytes(FNV1A_START, file.ptr, file.n_bytes),
                 (unsigned long long)vocabulary);
    (void)snprintf(name, sizeof(name), "%s.journal", path);
    write_bytes(name, head, (size_t)n, lines);
}

/* Write the conversation turn by turn, through the journal, and read it before it is compacted. */
static void check_appended(const struct store *store, const char *path,
                           const struct transcript *whole)
{
    struct store_file f = {0};
    struct transcript_state part = whole->now;
    struct transcript read = {0};
    struct store_reading reading;
    struct bn_error err = {0};
    check(store_open(&f, path, NULL));
    for (part.n = whole->now.n > 20 ? whole->now.n - 20 : 0; part.n < whole->now.n; part.n++)
        check(store_save(store, &f, &part, &err));
    check(store_save(store, &f, &part, &err));
    if (f.base_is_known) { /* else nothing was written, because the conversation is empty */
        check(store_read(store, path, &read, &reading, &err));
        check_same(&whole->now, &read.now);
    }
    transcript_finish(&read);
    check(store_close(store, &f, &part, &err));
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
    char journal[80];
    (void)snprintf(journal, sizeof(journal), "%s.journal", path);
    (void)unlink(journal); /* it may be absent */
    check_appended(store, path, &first);
    struct store_file f = {0};
    check(store_open(&f, path, NULL) && store_replace(store, &f, &first.now, &err));
    store_forget(&f);
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
    check(fd >= 0 && close(fd) == 0);
    const char *text = (const char *)bytes;
    const char *mark = n_bytes > 0 ? memchr(text, JOURNAL_MARK, n_bytes) : NULL;
    const struct bn_str file = {text, mark ? (size_t)(mark - text) : n_bytes};
    write_bytes(path, "", 0, file);
    if (mark)
        write_journal(path, file, (struct bn_str){mark + 1, n_bytes - file.n_bytes - 1},
                      tokenizer_info(t)->hash);
    check_session(&store, path);
    (void)unlink(path);
    char journal[80];
    (void)snprintf(journal, sizeof(journal), "%s.journal", path);
    (void)unlink(journal); /* it may be absent */
    return 0;
}
