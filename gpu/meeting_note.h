/*
 * The file at which ranks meet: the number of the run, and where its rank 0 listens. Not here: what is
 * said there (gpu/rendezvous.c).
 *
 * Invariant: whoever reads it finds all of it or nothing.
 */
#ifndef GPU_MEETING_NOTE_H
#define GPU_MEETING_NOTE_H

#include "gpu/net.h"

struct meeting_note {
    uint64_t run;
    struct net_place at;
};

/* STATUS_INPUT where it cannot be written. */
enum status meeting_note_write(const char *file, const struct meeting_note *note, struct err *err);
/* False: there is none, or none that makes sense. */
bool meeting_note_read(const char *file, struct meeting_note *out);
/* Unless another run has written its own there since. */
void meeting_note_remove(const char *file, uint64_t run);

#endif
