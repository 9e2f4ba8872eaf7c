noinst_LIBRARIES += db/libdb.a
db_libdb_a_SOURCES = \
	db/connection.c \
	db/connection.h \
	db/intern.c \
	db/intern.h \
	db/number.h \
	db/query.c \
	db/query.h \
	db/recognise.c \
	db/recognise.h \
	db/rows.c \
	db/rows.h \
	db/schema.c \
	db/schema.h \
	db/shared.c \
	db/shared.h \
	db/statement.c \
	db/statement.h \
	db/store.c \
	db/store.h \
	db/store_get.c \
	db/store_inner.h \
	db/store_put.c

# The schema is one SQL file, compiled in as one C string.
db/schema.inc: db/schema.sql
	@$(MKDIR_P) db
	$(AM_V_GEN)$(AS_C_STRING) $< > $@.tmp && mv -f $@.tmp $@
db/schema.$(OBJEXT): db/schema.inc
CLEANFILES += db/schema.inc
EXTRA_DIST += db/schema.sql
