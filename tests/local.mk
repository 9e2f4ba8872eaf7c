# Every test prints TAP.  C programs end in .t (built), scripts in .sh (kept).
TEST_EXTENSIONS = .t .sh
T_LOG_DRIVER  = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh
SH_LOG_DRIVER = $(T_LOG_DRIVER)
AM_TESTS_ENVIRONMENT = \
	top_srcdir='$(abs_top_srcdir)'; export top_srcdir; \
	top_builddir='$(abs_top_builddir)'; export top_builddir; \
	UNSHARD='$(abs_top_builddir)/unshard$(EXEEXT)'; export UNSHARD; \
	UNSHARD_SHARED="$${UNSHARD_SHARED:-$(abs_top_srcdir)/../shared}"; export UNSHARD_SHARED; \
	ASAN_OPTIONS='$(ASAN_OPTIONS):detect_leaks=1:abort_on_error=1'; export ASAN_OPTIONS; \
	LC_ALL=C; export LC_ALL;

check_LIBRARIES += tests/libtap.a
tests_libtap_a_SOURCES = tests/tap.c tests/tap.h
test_libs = tests/libtap.a $(unshard_libs)

c_tests = \
	tests/arena.t \
	tests/json.t \
	tests/text.t
check_PROGRAMS += $(c_tests)
tests_arena_t_SOURCES = tests/arena.c
tests_arena_t_LDADD   = $(test_libs)
tests_json_t_SOURCES  = tests/json.c
tests_json_t_LDADD    = $(test_libs)
tests_text_t_SOURCES  = tests/text.c
tests_text_t_LDADD    = $(test_libs)

sh_tests =
dist_check_SCRIPTS += $(sh_tests)
TESTS += $(c_tests) $(sh_tests)
EXTRA_DIST += tests/tap.sh

.PHONY: check-valgrind prove check-summary check-headers
check-valgrind: all $(check_PROGRAMS)
	$(MAKE) $(AM_MAKEFLAGS) check TESTS='$(c_tests)' T_LOG_COMPILER='valgrind -q --leak-check=full --error-exitcode=9'
prove: all $(check_PROGRAMS)
	$(AM_TESTS_ENVIRONMENT) prove --exec '' $(c_tests) $(addprefix $(srcdir)/,$(sh_tests))
# One line in plain words from the drivers' result files.
check-summary:
	@$(AWK) '/^:test-result:/ {n[$$2]++} END {printf "%d passed, %d failed, %d skipped\n", \
	  n["PASS"]+n["XFAIL"], n["FAIL"]+n["ERROR"]+n["XPASS"], n["SKIP"]}' $(TEST_LOGS:.log=.trs)
# Each header compiles alone.
check-headers:
	@for h in $(srcdir)/src/*.h $(srcdir)/src/*/*.h $(srcdir)/sim/*.h $(srcdir)/tests/*.h; do \
	  $(CC) $(DEFS) $(DEFAULT_INCLUDES) $(AM_CPPFLAGS) $(CPPFLAGS) -std=c11 -Wall -Werror -fsyntax-only -x c $$h || exit 1; done
