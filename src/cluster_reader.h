/*
 * Readers of the parts of a cluster file; cluster.c calls them and owns the document.
 *
 * Each reads one part of the root into reader.out. A part, a rate or a price that is missing is an
 * error, or, where there is a base, stays as the base has it. Messages name file, place and the
 * nearest key.
 */
#ifndef SRC_CLUSTER_READER_H
#define SRC_CLUSTER_READER_H

#include "src/cluster.h"
#include "src/json.h"

struct cluster_reader {
    struct arena *arena; /* takes every string and table */
    struct cluster *out;
    struct err *err;
    bool has_base;
};

enum status cluster_read_gpu(const struct cluster_reader *r, const struct json_at *root);
enum status cluster_read_rates(const struct cluster_reader *r, const struct json_at *root);
enum status cluster_read_collectives(const struct cluster_reader *r, const struct json_at *root);
/* After the rates: a profile stands on them. */
enum status cluster_read_hosts(const struct cluster_reader *r, const struct json_at *root);
enum status cluster_read_prices(const struct cluster_reader *r, const struct json_at *root);

/* Names of the sections of rates, each once; room for n_cluster_rate_fields. Returns how many. */
size_t cluster_rate_sections(const char **names);

/* The rates of section name, from an object that stands elsewhere. */
enum status cluster_read_section(const struct cluster_reader *r, const struct json_at *section,
                                 const char *name);

/* Below: one value at a time, shared by the readers. */

/* Position of a name among n, or -1. */
int cluster_index_of(const char *name, const char *const *names, size_t n);
enum status cluster_fail_unknown(const struct json_at *at, const char *what, const char *name,
                                 const char *const *known, size_t n, struct err *err);
/* An object that has none but the known keys. */
enum status cluster_check_object(const struct json_at *at, const char *const *known, size_t n,
                                 struct err *err);
enum status cluster_read_string(const struct cluster_reader *r, const struct json_at *at,
                                const char *key, const char **out);
/* From least to most, both allowed. */
enum status cluster_read_number(const struct cluster_reader *r, const struct json_at *at,
                                const char *key, double least, double most, double *out);

#endif
