/*
 * Accesses of a packing, one by one, against what the unit allows.
 */
#include <stdlib.h>

#include "tests/pack_rig.h"
#include "tests/tap.h"

struct pack_watch pack_watch_of(const struct packed_unit *unit, const char *to, bool warp)
{
    return (struct pack_watch){
        .unit = unit, .to = to, .warp = warp, .written = calloc(unit->to_bytes + 1, 1)};
}

static bool is_in_a_param(const struct packed_unit *unit, const char *at, uint32_t bytes)
{
    for (uint32_t i = 0; i < unit->n_param; i++) {
        const struct packed_param *param = &unit->params[i];
        if (at >= param->at && at + bytes <= param->at + param->n_bytes)
            return true;
    }
    return false;
}

void pack_watch_look(struct pack_watch *watch, const char *at, uint32_t bytes, bool writes)
{
    if (bytes == 0)
        return;
    watch->unaligned += watch->warp && bytes >= 8 && (uintptr_t)at % bytes != 0;
    if (!writes) {
        watch->outside += !is_in_a_param(watch->unit, at, bytes);
    } else if (at < watch->to || at + bytes > watch->to + watch->unit->to_bytes) {
        watch->stray++;
    } else {
        for (uint32_t i = 0; i < bytes; i++)
            watch->written[at - watch->to + i]++;
    }
}

static uint64_t count_not_once(const struct pack_watch *watch)
{
    uint8_t *owned = packed_unit_owned(watch->unit);
    uint64_t bad = 0;
    for (uint64_t i = 0; i < watch->unit->to_bytes; i++)
        bad += watch->written[i] != owned[i];
    free(owned);
    return bad;
}

uint64_t pack_watch_faults(const struct pack_watch *watch)
{
    uint64_t wrong = packed_unit_faults(watch->unit, watch->to), twice = count_not_once(watch);
    uint64_t faults = wrong + twice + watch->outside + watch->unaligned + watch->stray;
    if (faults)
        tap_note("%llu wrong, %llu not written once, %llu read outside, %llu unaligned, %llu stray",
                 (unsigned long long)wrong, (unsigned long long)twice,
                 (unsigned long long)watch->outside, (unsigned long long)watch->unaligned,
                 (unsigned long long)watch->stray);
    return faults;
}
