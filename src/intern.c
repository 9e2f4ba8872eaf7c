/*
 * Open addressing with linear probing; keys are copied into the arena.
 */
#include "src/intern.h"

#include <string.h>

#include "src/hash.h"

struct intern_entry {
    const void *key; /* NULL: free */
    size_t length;
    uint64_t hash;
    int64_t id;
};

static uint64_t hash_bytes(const unsigned char *at, size_t length)
{
    uint64_t hash = hash_add(0, length), word;
    for (; length >= sizeof(word); at += sizeof(word), length -= sizeof(word)) {
        memcpy(&word, at, sizeof(word));
        hash = hash_add(hash, word);
    }
    word = 0;
    memcpy(&word, at, length);
    hash = hash_add(hash, word);
    return hash ^ hash >> 32;
}

static void enlarge(struct intern *intern, struct arena *arena)
{
    const struct intern_entry *old = intern->entries;
    const uint32_t n_old = intern->cap;

    intern->cap = n_old ? n_old * 2 : 256;
    intern->entries = arena_array(arena, struct intern_entry, intern->cap);
    for (uint32_t i = 0; i < n_old; i++) {
        if (!old[i].key)
            continue;
        uint64_t at = old[i].hash & (intern->cap - 1);
        while (intern->entries[at].key)
            at = (at + 1) & (intern->cap - 1);
        intern->entries[at] = old[i];
    }
}

int64_t *intern_find(struct intern *intern, struct arena *arena, const void *key, size_t length)
{
    if (intern->n >= intern->cap / 2)
        enlarge(intern, arena);
    const uint64_t hash = hash_bytes(key, length);
    for (uint64_t at = hash & (intern->cap - 1);; at = (at + 1) & (intern->cap - 1)) {
        struct intern_entry *entry = &intern->entries[at];
        if (!entry->key) {
            void *copy = arena_take(arena, length + 1);
            memcpy(copy, key, length);
            *entry = (struct intern_entry){.key = copy, .length = length, .hash = hash};
            intern->n++;
            return &entry->id;
        }
        if (entry->hash == hash && entry->length == length && !memcmp(entry->key, key, length))
            return &entry->id;
    }
}
