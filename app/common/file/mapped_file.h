/*
 * The message of a program that can no longer read its memory-mapped model file.
 *
 * If another program cuts the file, or its disk fails, no call returns an error: an access to the
 * mapped bytes raises SIGBUS.
 */
#ifndef APP_MAPPED_FILE_H
#define APP_MAPPED_FILE_H

/* From now on, SIGBUS prints the message on stderr and ends the process by this signal. Call it at
 * the start of main, before a file is opened. `program` is the name in the message. */
void mapped_file_watch(const char *program);

/* Print the message. For a handler of SIGBUS that replaces the one of mapped_file_watch. If several
 * threads call it, only the first call prints and returns; the others wait, so that the message is
 * printed once. The handler of the first thread must then end the process. */
void mapped_file_report(void);

#endif
