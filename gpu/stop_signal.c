/*
 * The handler notes a number; see stop_signal.h.
 */
#include "gpu/stop_signal.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

static const int ending[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
enum { N_ENDING = sizeof ending / sizeof *ending };

static struct sigaction before[N_ENDING];
static volatile sig_atomic_t came;

static void put_back(void)
{
    for (int i = 0; i < N_ENDING; i++)
        sigaction(ending[i], &before[i], NULL);
}

static void note(int number)
{
    came = number;
    put_back();
}

void stop_signal_watch(void)
{
    struct sigaction noting = {.sa_handler = note};

    sigfillset(&noting.sa_mask);
    came = 0;
    for (int i = 0; i < N_ENDING; i++)
        sigaction(ending[i], NULL, &before[i]);
    for (int i = 0; i < N_ENDING; i++)
        if (before[i].sa_handler != SIG_IGN)
            sigaction(ending[i], &noting, NULL);
}

void stop_signal_unwatch(void)
{
    put_back();
    came = 0;
}

int stop_signal_came(void)
{
    return came;
}

void stop_signal_leave_to(int parent)
{
    for (int i = 0; i < N_ENDING; i++)
        signal(ending[i], SIG_IGN);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) /* it ended before it could be asked for */
        _exit(1);
}
