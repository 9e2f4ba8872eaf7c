/*
 * JSON in and out; json.c and json_write.c are the only files that know cJSON.
 *
 * Reading is strict: whole text, no duplicate keys, integers exact (below 2^53), and every
 * complaint names the file and the place in it ("line 3, column 9" for syntax, "layers[2].name" for
 * meaning). Writing prints integers exactly, from raw text, since cJSON's numbers are doubles.
 */
#ifndef SRC_JSON_H
#define SRC_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "src/err.h"
#include "src/text.h"

struct cJSON;

struct json_doc {
    struct cJSON *root;
    char *name; /* the file, for messages */
};

/* name is what messages call the source. out is released with json_release(). */
enum status json_parse(const char *text, const char *name, struct json_doc *out, struct err *err);
enum status json_read_file(const char *path, struct json_doc *out, struct err *err);
void json_release(struct json_doc *doc);

/*
 * A place in a document: a node and how one gets there. Passed by value; path is for messages and
 * is cut where it is too long.
 */
struct json_at {
    const struct json_doc *doc;
    const struct cJSON *node;
    uint32_t index;         /* among its siblings, where json_first() and json_next() led here */
    uint32_t parent_length; /* how much of path is the parent's */
    char path[120];
};

struct json_at json_root(const struct json_doc *doc);
bool json_has(const struct json_at *at, const char *key); /* false for a missing key and for null */
bool json_is_object(const struct json_at *at);
bool json_is_array(const struct json_at *at);
bool json_is_string(const struct json_at *at);
bool json_is_number(const struct json_at *at);

/* A missing key (or null) is an error in each of these; ask json_has() where it may be missing. */
enum status json_get(const struct json_at *at, const char *key, struct json_at *out,
                     struct err *err);
enum status json_get_u64(const struct json_at *at, const char *key, uint64_t max, uint64_t *out,
                         struct err *err);
/* The same where 0 makes no sense. */
enum status json_get_count(const struct json_at *at, const char *key, uint64_t max, uint64_t *out,
                           struct err *err);
enum status json_get_double(const struct json_at *at, const char *key, double *out,
                            struct err *err);
enum status json_get_bool(const struct json_at *at, const char *key, bool *out, struct err *err);
enum status json_get_string(const struct json_at *at, const char *key, const char **out,
                            struct err *err); /* out lives as long as the document */
/* The node's own text where it is a string; an error where it is not. */
enum status json_string(const struct json_at *at, const char **out, struct err *err);
/* A place itself that has to be a whole number from 0 to max. */
enum status json_u64(const struct json_at *at, uint64_t max, uint64_t *out, struct err *err);

/* for (it = json_first(at); it.node; it = json_next(&it)): elements of an array or an object. */
struct json_at json_first(const struct json_at *at);
struct json_at json_next(const struct json_at *element);
const char *json_key(const struct json_at *element); /* of an object's element, else "" */

/* "FILE: PLACE: message", status STATUS_INPUT. */
enum status json_fail(const struct json_at *at, struct err *err, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Building. Objects and arrays belong to what they were added to; the root to json_free(). */
struct cJSON *json_new_object(void);
struct cJSON *json_new_array(void);
void json_free(struct cJSON *root);
/* In each of these a key of NULL appends to an array. */
struct cJSON *json_add_object(struct cJSON *parent, const char *key);
struct cJSON *json_add_array(struct cJSON *parent, const char *key);
/* A root that was built alone; it belongs to parent from now on. */
void json_add_root(struct cJSON *parent, const char *key, struct cJSON *root);
/* Bytes of value that are not UTF-8 become U+FFFD. */
void json_add_string(struct cJSON *parent, const char *key, const char *value);
void json_add_int(struct cJSON *parent, const char *key, int64_t value);
void json_add_u64(struct cJSON *parent, const char *key, uint64_t value);
void json_add_bool(struct cJSON *parent, const char *key, bool value);
/* A number with this many decimals, printed as written; null where it is not finite. */
void json_add_decimal(struct cJSON *parent, const char *key, double value, int decimals);
/* A number with at least so many digits that count, never as 1e-9; null where it is not finite. */
void json_add_number(struct cJSON *parent, const char *key, double value, int digits);
/* The shortest number that is the same to 15 digits, which is all that people and files write. */
void json_add_real(struct cJSON *parent, const char *key, double value);
/* The fewest digits that read back as the same double; null where it is not finite. */
void json_add_exact(struct cJSON *parent, const char *key, double value);
void json_print(const struct cJSON *root, struct text *out); /* indented, with a last newline */
void json_print_line(const struct cJSON *root, struct text *out); /* neither blank nor newline */

#endif
