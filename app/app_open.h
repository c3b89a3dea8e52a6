/*
 * Opens the program: options, files, and the conversation to begin with.
 *
 * Each step prints its error to stderr and returns the exit code, or EXIT_DONE to go on. app_close
 * closes whatever is open, also after a failure.
 */
#ifndef APP_APP_OPEN_H
#define APP_APP_OPEN_H

#include "app/app.h"

/* Read the config file and the environment. Sets the option "model", and `prompt` from the words
 * that are left. */
enum exit_code app_open_options(struct app *app, struct strbuf *prompt);

/* Open the model file, its vocabulary and its template. Takes milliseconds. */
enum exit_code app_open_files(struct app *app);

/* Start the worker, which begins to load the model, and open the conversation (--continue, --load,
 * --session, --system). app->ui.ops must be set. */
enum exit_code app_open_chat(struct app *app);

void app_close(struct app *app);

#endif
