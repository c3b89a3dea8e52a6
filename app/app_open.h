/*
 * Opening the program: what the arguments mean, the files, the conversation to begin with.
 *
 * Each step says on stderr what went wrong and gives the exit code, EXIT_DONE to go on. What was
 * opened is closed by app_close, also after a failure.
 */
#ifndef APP_APP_OPEN_H
#define APP_APP_OPEN_H

#include "app/app.h"

/* Config file and environment; then the model's path, and the words that are left as the prompt. */
enum exit_code app_open_options(struct app *app, struct strbuf *prompt);

/* Model file, vocabulary, template: milliseconds. */
enum exit_code app_open_files(struct app *app);

/* Worker (the model begins to load), conversation (--continue, --load, --session, --system). The
 * painter's ops must be chosen. */
enum exit_code app_open_chat(struct app *app);

void app_close(struct app *app);

#endif
