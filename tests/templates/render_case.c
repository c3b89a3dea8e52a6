/*
 * Renders templates for the comparison with jinja2. Reads one JSON object per line, as case_run
 * accepts it, and prints one result per line.
 */
#include "tests/templates/case_run.h"

#include <stdio.h>
#include <stdlib.h>

int main(void)
{
    char *line = NULL;
    size_t cap = 0;
    while (getline(&line, &cap, stdin) > 0) {
        json_error_t why;
        json_t *const in = json_loads(line, JSON_ALLOW_NUL, &why);
        json_t *const result = in ? case_run(in) : json_pack("{s:s}", "error", why.text);
        char *const text = result ? json_dumps(result, JSON_COMPACT) : NULL;
        puts(text ? text : "{\"error\": \"the result is not JSON\"}");
        free(text);
        json_decref(result);
        json_decref(in);
    }
    free(line);
    return 0;
}
