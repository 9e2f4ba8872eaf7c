/*
 * What storing and reading a run share. Private to db/.
 */
#ifndef DB_STORE_INNER_H
#define DB_STORE_INNER_H

#include "db/connection.h"
#include "db/rows.h"
#include "db/shared.h"
#include "db/store.h"

enum { STORE_PARTS = 8 };

struct store {
    struct connection connection;
    struct rows rows; /* what the table "rows" shows while a run is stored */
    struct shared shared;
    sqlite3_stmt *statements[STORE_PARTS]; /* of db/store_put.c, once they were used */
};

#endif
