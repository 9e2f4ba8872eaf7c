/*
 * Is a program safe, whatever the timing? Proved without running or placing it.
 *
 * Vector clocks over streams, communicators and host, walked over init, first and two iterations of
 * steady. Faults, each with the two tasks and the buffer:
 *   - a read that does not follow the write, a write that does not follow reads and writes before
 *     it
 *   - an access before ALLOC, after FREE, or of a buffer that nobody wrote
 *   - the allocator's contract: after FREE of a buffer of pool P, a use of it that does not happen
 *     before the first write to a buffer allocated later in P (a body allocates in its stream's
 *     pool); but for what RECORD_STREAM covers: all that lies before the events at the FREE, which
 *     the allocator itself waits for
 *   - a WAIT for an event that was not recorded before it in host order
 *   - an ALLOC or FREE by body that the neighbouring body's tape does not do, or the other way
 *     round; a backward that does not follow the forward of its frame
 *   - an operator that reads a slot which no earlier operator of its pair of bodies has written
 *   - a buffer of scope STEP that is alive at the end of its section; a second ALLOC or FREE
 *
 * Happens-before: order on one stream; RECORD before its WAIT; order on one communicator; HOST_WAIT
 * before all that the host issues after it. Nothing else: two launches on different streams are
 * unordered, however far apart the host issues them.
 */
#ifndef SRC_VERIFY_H
#define SRC_VERIFY_H

#include "src/program.h"

enum fault_kind {
    FAULT_NONE,
    FAULT_RACE,      /* second does not follow first */
    FAULT_UNWRITTEN, /* second reads what nobody wrote */
    FAULT_DEAD,      /* second uses a buffer that is not allocated */
    FAULT_REUSE,     /* memory that first uses may already be written by second */
    FAULT_EVENT,     /* a wait for an event that nothing recorded */
    FAULT_LIFETIME,  /* allocated or freed twice, or alive past its scope */
    FAULT_BODY,      /* a tape does not do what INSTR_BY_BODY or its operands say */
};

struct fault {
    enum fault_kind kind;
    uint32_t first, second; /* tasks, UINT32_MAX where there is none */
    uint32_t buffer;        /* or NO_BUFFER; for FAULT_EVENT the event */
};

/* STATUS_RUN, *fault and one line in err at the first fault in host order. arena: scratch. */
enum status verify_program(const struct program *program, struct arena *arena, struct fault *fault,
                           struct err *err);

#endif
