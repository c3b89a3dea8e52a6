/*
 * main() of a fuzz target without libFuzzer. Runs the target on each file of the command line, and
 * on each file in a folder of the command line. So a build with any compiler can replay seeds, and
 * inputs that once failed, as an ordinary test. It is a failure if there is no file.
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
        /* Exactly n bytes, so that a sanitizer reports a read past the end. */
        bytes = n >= 0 ? malloc((size_t)n ? (size_t)n : 1) : NULL;
        if (bytes && fread(bytes, 1, (size_t)n, file) == (size_t)n) {
            (void)LLVMFuzzerTestOneInput(bytes, (size_t)n);
            result = REPLAYED;
        }
    }
    free(bytes);
    (void)fclose(file);
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
            (void)closedir(folder);
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
