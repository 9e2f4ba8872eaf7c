/*
 * The file at which ranks meet; see meeting_note.h.
 */
#include "gpu/meeting_note.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void print_note(const struct meeting_note *note, FILE *to)
{
    fprintf(to, "unshard rendezvous 2\nrun %016" PRIx64 "\nport %" PRIu32 "\n", note->run,
            note->at.port);
    for (uint32_t i = 0; i < note->at.n; i++) {
        char text[INET_ADDRSTRLEN];
        inet_ntop(AF_INET, &note->at.addresses[i], text, sizeof text);
        fprintf(to, "at %s\n", text);
    }
}

enum status meeting_note_write(const char *file, const struct meeting_note *note, struct err *err)
{
    char part[4096];
    FILE *to = NULL;

    if (snprintf(part, sizeof part, "%s.part", file) < (int)sizeof part)
        to = fopen(part, "w");
    if (!to)
        return err_set(err, STATUS_INPUT, "cannot write '%s.part': %s", file, strerror(errno));
    print_note(note, to);
    const bool kept = fflush(to) == 0 && fsync(fileno(to)) == 0;
    if (fclose(to) == 0 && kept && rename(part, file) == 0)
        return STATUS_OK;
    const int reason = errno;
    unlink(part);
    return err_set(err, STATUS_INPUT, "cannot write '%s': %s", file, strerror(reason));
}

bool meeting_note_read(const char *file, struct meeting_note *out)
{
    struct meeting_note note = {.run = 0};
    char text[INET_ADDRSTRLEN];
    FILE *from = fopen(file, "r");

    if (!from)
        return false;
    if (fscanf(from, "unshard rendezvous 2 run %" SCNx64 " port %" SCNu32, &note.run,
               &note.at.port) == 2)
        while (note.at.n < NET_ADDRESSES && fscanf(from, " at %15s", text) == 1)
            note.at.n += inet_pton(AF_INET, text, &note.at.addresses[note.at.n]) == 1;
    fclose(from);
    *out = note;
    return note.at.n > 0;
}

void meeting_note_remove(const char *file, uint64_t run)
{
    struct meeting_note now;

    if (meeting_note_read(file, &now) && now.run == run)
        unlink(file);
}
