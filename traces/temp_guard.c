/*
 * A handler that removes one file, puts back what was there before it and raises the signal again.
 *
 * Invariant: outside of blocked signals the name is set exactly while the file is there and this
 * process has to remove it. A signal that is ignored stays so: it does not end the process.
 */
#include "traces/temp_guard.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const int ending[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXCPU};
enum { N_ENDING = sizeof ending / sizeof *ending };

static struct sigaction before[N_ENDING], before_too_large;
static char watched[PATH_MAX]; /* empty: none */

static void block(sigset_t *old)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, old);
}

static void unblock(const sigset_t *old)
{
    sigprocmask(SIG_SETMASK, old, NULL);
}

/* The signal that is raised waits until this returns. */
static void remove_and_raise(int number)
{
    unlink(watched);
    for (int i = 0; i < N_ENDING; i++)
        sigaction(ending[i], &before[i], NULL);
    raise(number);
}

static void begin_watch(const char *path)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    struct sigaction removal = {.sa_handler = remove_and_raise};
    sigemptyset(&ignore.sa_mask);
    sigfillset(&removal.sa_mask);
    snprintf(watched, sizeof watched, "%s", path);
    for (int i = 0; i < N_ENDING; i++) {
        sigaction(ending[i], NULL, &before[i]);
        if (before[i].sa_handler != SIG_IGN)
            sigaction(ending[i], &removal, NULL);
    }
    sigaction(SIGXFSZ, &ignore, &before_too_large);
}

static void end_watch(void)
{
    for (int i = 0; i < N_ENDING; i++)
        sigaction(ending[i], &before[i], NULL);
    sigaction(SIGXFSZ, &before_too_large, NULL);
    watched[0] = '\0';
}

int temp_guard_open(const char *path)
{
    sigset_t old;
    if (strlen(path) >= sizeof watched || watched[0]) {
        errno = watched[0] ? EBUSY : ENAMETOOLONG;
        return -1;
    }
    block(&old);
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    const int reason = errno;
    if (fd >= 0)
        begin_watch(path);
    unblock(&old);
    errno = reason;
    return fd;
}

int temp_guard_rename(const char *to)
{
    sigset_t old;
    block(&old);
    const int result = rename(watched, to), reason = errno;
    if (result != 0)
        unlink(watched);
    end_watch();
    unblock(&old);
    errno = reason;
    return result;
}

void temp_guard_remove(void)
{
    sigset_t old;
    block(&old);
    unlink(watched);
    end_watch();
    unblock(&old);
}
