/*
 * The temporary file of this process goes with it when a signal ends it. SIGKILL leaves it.
 *
 * One file at a time. Until it is ended a file that grows too large is an error of the write, not
 * the end of the process.
 */
#ifndef TRACES_TEMP_GUARD_H
#define TRACES_TEMP_GUARD_H

/* Makes the file, which must not be there, and keeps watch over it; -1 and errno as open() has. */
int temp_guard_open(const char *path);
/* The file gets its name (0, or -1 and errno), or is removed; the watch ends. */
int temp_guard_rename(const char *to);
void temp_guard_remove(void);

#endif
