noinst_LIBRARIES += src/libcore.a
src_libcore_a_SOURCES = \
	src/arena.c src/arena.h \
	src/dtype.c src/dtype.h \
	src/err.c src/err.h \
	src/json.c src/json.h src/json_check.c src/json_check.h src/json_write.c \
	src/text.c src/text.h

# The libraries in link order: users first, then what they use.
unshard_libs = src/libcore.a $(CJSON_LIBS) -lm
