noinst_LIBRARIES += db/libdb.a
db_libdb_a_SOURCES = \
	db/connection.c \
	db/connection.h \
	db/get_rows.c \
	db/get_rows.h \
	db/names.c \
	db/names.h \
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
	db/store_candidates.c \
	db/store_device.c \
	db/store_get.c \
	db/store_get_real.c \
	db/store_inner.h \
	db/store_put.c \
	db/store_put_real.c

# The steps of the schema are SQL files, each compiled in as one C string.
schema_steps = db/schema.inc db/schema_2.inc db/schema_3.inc db/schema_4.inc db/schema_5.inc db/schema_6.inc db/schema_7.inc
.sql.inc:
	@$(MKDIR_P) $(@D)
	$(AM_V_GEN)$(AS_C_STRING) $< > $@.tmp && mv -f $@.tmp $@
db/schema.$(OBJEXT): $(schema_steps)
CLEANFILES += $(schema_steps)
EXTRA_DIST += db/schema.sql db/schema_2.sql db/schema_3.sql db/schema_4.sql db/schema_5.sql db/schema_6.sql db/schema_7.sql
