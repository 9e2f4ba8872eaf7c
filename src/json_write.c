/*
 * Writing JSON through cJSON, with numbers as text of our own.
 *
 * cJSON prints doubles with 15 digits and integers past 2^53 wrong, so that no number is ever given
 * to it as one. Out of memory ends the program: a document is never half built.
 */
#include "src/json.h"

#include <cjson/cJSON.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/json_check.h"

#define NUMBER_CHARS 400 /* the largest double with a few decimals */

static cJSON *made(cJSON *item)
{
    if (!item)
        err_out_of_memory(sizeof(*item));
    return item;
}

static cJSON *add(cJSON *parent, const char *key, cJSON *item)
{
    bool added = key ? cJSON_AddItemToObject(parent, key, made(item))
                     : cJSON_AddItemToArray(parent, made(item));
    if (!added)
        err_out_of_memory(sizeof(*item));
    return item;
}

struct cJSON *json_new_object(void)
{
    return made(cJSON_CreateObject());
}

struct cJSON *json_new_array(void)
{
    return made(cJSON_CreateArray());
}

void json_free(struct cJSON *root)
{
    cJSON_Delete(root);
}

struct cJSON *json_add_object(struct cJSON *parent, const char *key)
{
    return add(parent, key, cJSON_CreateObject());
}

struct cJSON *json_add_array(struct cJSON *parent, const char *key)
{
    return add(parent, key, cJSON_CreateArray());
}

void json_add_root(struct cJSON *parent, const char *key, struct cJSON *root)
{
    add(parent, key, root);
}

void json_add_string(struct cJSON *parent, const char *key, const char *value)
{
    struct text valid;
    text_init(&valid);
    text_add(&valid, "%s", ""); /* so that there is a string even for an empty value */
    while (*value) {
        size_t run = 0, length;
        while ((length = json_utf8_length(value + run)) > 0)
            run += length;
        bool bad = value[run] != '\0';
        text_add(&valid, "%.*s%s", (int)run, value, bad ? "\xef\xbf\xbd" : "");
        value += run + bad;
    }
    add(parent, key, cJSON_CreateString(valid.at));
    text_release(&valid);
}

void json_add_int(struct cJSON *parent, const char *key, int64_t value)
{
    char digits[NUMBER_CHARS];
    snprintf(digits, sizeof(digits), "%" PRId64, value);
    add(parent, key, cJSON_CreateRaw(digits));
}

void json_add_u64(struct cJSON *parent, const char *key, uint64_t value)
{
    char digits[NUMBER_CHARS];
    snprintf(digits, sizeof(digits), "%" PRIu64, value);
    add(parent, key, cJSON_CreateRaw(digits));
}

void json_add_bool(struct cJSON *parent, const char *key, bool value)
{
    add(parent, key, cJSON_CreateBool(value));
}

void json_add_decimal(struct cJSON *parent, const char *key, double value, int decimals)
{
    char digits[NUMBER_CHARS];
    snprintf(digits, sizeof(digits), "%.*f", decimals, value);
    add(parent, key, isfinite(value) ? cJSON_CreateRaw(digits) : cJSON_CreateNull());
}

void json_add_number(struct cJSON *parent, const char *key, double value, int digits)
{
    int whole = 1; /* digits before the point; of 0.001 they are -2 */
    if (isfinite(value) && value != 0)
        whole = 1 + (int)floor(log10(fabs(value)));
    json_add_decimal(parent, key, value, whole < digits ? digits - whole : 0);
}

void json_add_real(struct cJSON *parent, const char *key, double value)
{
    char all[40], some[40];
    int digits = 0;
    snprintf(all, sizeof(all), "%.*g", DBL_DIG, value);
    do {
        snprintf(some, sizeof(some), "%.*g", ++digits, value);
    } while (digits < DBL_DIG && strtod(some, NULL) != strtod(all, NULL));
    json_add_number(parent, key, value, digits);
}

void json_add_exact(struct cJSON *parent, const char *key, double value)
{
    char some[40];
    int digits = 0;
    do {
        snprintf(some, sizeof(some), "%.*g", ++digits, value);
    } while (digits < DBL_DECIMAL_DIG && strtod(some, NULL) != value);
    json_add_number(parent, key, value, digits);
}

static void add_printed(char *printed, const char *end, struct text *out)
{
    if (!printed)
        err_out_of_memory(sizeof(cJSON));
    text_add(out, "%s%s", printed, end);
    cJSON_free(printed);
}

void json_print(const struct cJSON *root, struct text *out)
{
    add_printed(cJSON_Print(root), "\n", out);
}

void json_print_line(const struct cJSON *root, struct text *out)
{
    add_printed(cJSON_PrintUnformatted(root), "", out);
}
