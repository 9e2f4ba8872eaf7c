/*
 * The expanded level of a program, one event at a time, in host order.
 *
 * Bodies become their operators and slots, groups their members; ALLOC and FREE that a body's tape
 * does (INSTR_BY_BODY) are passed over. Nothing is stored: this is a cursor. Invariant: the events
 * of a section are the same at each walk, and each expanded id is allocated at most once in it.
 */
#ifndef SRC_EXPAND_H
#define SRC_EXPAND_H

#include "src/program.h"

#define NO_OP UINT32_MAX

struct expanded {
    uint8_t op;           /* enum instr_op */
    uint8_t stream;       /* as in struct instr */
    uint8_t memory_class; /* ALLOC, FREE, RECORD_STREAM */
    uint16_t flags;
    uint32_t instr;   /* the unit-level instruction this came from */
    uint32_t id;      /* of a buffer: expanded id; else as in struct instr */
    uint32_t body_op; /* LAUNCH of one operator: in body_table.ops; else NO_OP */
    uint64_t bytes;   /* of a buffer: requested bytes */
};

struct expand {
    const struct program *program;
    uint32_t instr;        /* the instruction being expanded */
    uint32_t next, end;    /* the one after it, and where to stop */
    uint32_t step, n_step; /* progress inside it: members or tape entries */
    /* Of a LAUNCH of a body, so that each of its tape's entries need not find them again. */
    const struct tape *tape;
    const struct slot *slots;
    const struct frame *frame;
    uint32_t first_internal; /* slots from here on are no boundary */
};

void expand_begin(struct expand *walk, const struct program *program, enum section_id section);
bool expand_next(struct expand *walk, struct expanded *out); /* false: the section is over */

/* The expanded id that a frame's slot is, boundary included. */
uint32_t expand_slot_id(const struct program *program, const struct frame *frame, uint32_t slot);

#endif
