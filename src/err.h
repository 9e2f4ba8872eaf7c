/*
 * What went wrong, in one line for a person.
 *
 * A function that can fail returns an enum status and, where the reason is worth telling, takes a
 * struct err * as its last parameter (NULL is allowed). The function that decides that something is
 * wrong writes the text; callers may put a place in front of it. Status values are the exit codes
 * of the program, so that nothing has to be translated at the end.
 */
#ifndef SRC_ERR_H
#define SRC_ERR_H

#include <stddef.h>

enum status {
    STATUS_OK = 0,
    STATUS_NO = 1,     /* the answer is no: over an explicit limit, not eligible */
    STATUS_USAGE = 2,  /* the command line asks for something that does not exist */
    STATUS_DEVICE = 3, /* a device that is not usable here */
    STATUS_INPUT = 4,  /* a file that cannot be read or written, or makes no sense */
    STATUS_RUN = 5,    /* the program that was built cannot be run */
    STATUS_DB = 6,     /* the run history */
};

struct err {
    enum status status;
    char text[640]; /* lower case, no full stop, error first; empty if nothing was said */
};

/* Write the reason and return status, so that "return err_set(...)" reads as one step. */
enum status err_set(struct err *err, enum status status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/*
 * Put "prefix: " in front of what is there and return the status that is there; STATUS_INPUT where
 * err is NULL, so that a failure stays one.
 */
enum status err_prefix(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* One line on stderr, and the end of the program. */
void err_out_of_memory(size_t bytes) __attribute__((noreturn));

#endif
