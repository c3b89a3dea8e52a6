/*
 * See proc_number.h.
 */
#include "engine/base/proc_number.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LINE_MAX_BYTES 1024

bool proc_number(const char *path, const char *key, uint64_t *out)
{
    char line[LINE_MAX_BYTES];
    bool is_found = false;
    FILE *f = fopen(path, "re");
    if (!f)
        return false;
    while (!is_found && fgets(line, sizeof line, f))
        is_found = strncmp(line, key, strlen(key)) == 0 &&
                   sscanf(line + strlen(key), "%" SCNu64, out) == 1;
    (void)fclose(f); /* only read */
    return is_found;
}
