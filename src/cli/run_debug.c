/*
 * The words of --debug; see run_debug.h.
 */
#include "src/cli/run_debug.h"

#include <stdio.h>
#include <string.h>

#include "src/cli/options.h"

static enum status take_number(const char *word, const char *value, int64_t *out, struct err *err)
{
    uint64_t number;
    if (!text_to_u64(value, &number) || number > INT64_MAX)
        return err_set(err, STATUS_USAGE, "--debug: '%.40s' is not a whole number from 0 on", word);
    *out = (int64_t)number;
    return STATUS_OK;
}

/* One word, with its value behind '='. */
static enum status take_word(const char *word, struct run_debug *out, struct err *err)
{
    static const char *const names[] = {"poison",   "no-verify", "jitter=SEED", "alloc-bias=BYTES",
                                        "die=RANK", "hang=RANK", NULL};
    const char *value = strchr(word, '=');
    const size_t length = value ? (size_t)(value - word) : strlen(word);
    int64_t seed = 0;
    enum status status = STATUS_OK;

    if (!strcmp(word, "poison"))
        out->poison = true;
    else if (!strcmp(word, "no-verify"))
        out->verify = false;
    else if (value && length == 6 && !strncmp(word, "jitter", length))
        status = take_number(word, value + 1, &seed, err);
    else if (value && length == 10 && !strncmp(word, "alloc-bias", length))
        status = take_number(word, value + 1, &out->alloc_bias_bytes, err);
    else if (value && length == 3 && !strncmp(word, "die", length))
        status = take_number(word, value + 1, &out->die_rank, err);
    else if (value && length == 4 && !strncmp(word, "hang", length))
        status = take_number(word, value + 1, &out->hang_rank, err);
    else {
        err_set(err, STATUS_USAGE, "--debug: unknown word '%.40s'", word);
        return options_hint(
            err, word, names,
            "poison, no-verify, jitter=SEED, alloc-bias=BYTES, die=RANK, hang=RANK");
    }
    if (seed > 0)
        out->jitter_seed = (uint64_t)seed;
    return status;
}

enum status run_debug_parse(const char *words, struct run_debug *out, struct err *err)
{
    struct run_debug debug = {.verify = true, .die_rank = -1, .hang_rank = -1};
    enum status status = STATUS_OK;
    char word[64];

    while (words && *words && status == STATUS_OK) {
        const size_t length = strcspn(words, ",");
        snprintf(word, sizeof word, "%.*s", (int)(length < 60 ? length : 60), words);
        status = take_word(word, &debug, err);
        words += length + (words[length] == ',');
    }
    if (status == STATUS_OK)
        *out = debug;
    return status;
}
