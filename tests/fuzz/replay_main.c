/*
 * Feeds every file named on the command line, and every file of a folder named there, to a fuzz
 * target: so any compiler replays the seeds, and the inputs that once failed, as an ordinary test.
 *
 * No file at all is a failure: a test that read nothing has shown nothing.
 */
#include "tests/fuzz/fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

enum replayed { REPLAYED, NOT_READ };

static enum replayed replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return NOT_READ;
    enum replayed result = NOT_READ;
    uint8_t *bytes = NULL;
    if (fseek(file, 0, SEEK_END) == 0) {
        const long n = ftell(file);
        rewind(file);
        /* malloc of exactly n: a sanitizer sees the first byte read past the end. */
        bytes = n >= 0 ? malloc((size_t)n ? (size_t)n : 1) : NULL;
        if (bytes && fread(bytes, 1, (size_t)n, file) == (size_t)n) {
            (void)LLVMFuzzerTestOneInput(bytes, (size_t)n); /* 0 or -1, neither is a verdict */
            result = REPLAYED;
        }
    }
    free(bytes);
    (void)fclose(file); /* opened for reading: nothing to lose */
    return result;
}

static size_t replay_folder(const char *path, DIR *folder)
{
    size_t n_replayed = 0;
    for (const struct dirent *entry; (entry = readdir(folder));) {
        char child[4096];
        const int n = snprintf(child, sizeof(child), "%s/%s", path, entry->d_name);
        if (entry->d_name[0] == '.' || n < 0 || (size_t)n >= sizeof(child))
            continue;
        n_replayed += replay_file(child) == REPLAYED;
    }
    return n_replayed;
}

int main(int argc, char **argv)
{
    size_t n_replayed = 0;
    for (int i = 1; i < argc; i++) {
        DIR *folder = opendir(argv[i]);
        if (folder) {
            n_replayed += replay_folder(argv[i], folder);
            (void)closedir(folder); /* read only */
        } else if (replay_file(argv[i]) == REPLAYED) {
            n_replayed++;
        } else {
            fprintf(stderr, "%s: cannot be read\n", argv[i]);
            return EXIT_FAILURE;
        }
    }
    printf("%zu inputs replayed\n", n_replayed);
    return n_replayed > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
