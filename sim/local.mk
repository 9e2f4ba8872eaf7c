noinst_LIBRARIES += sim/libsim.a
sim_libsim_a_SOURCES = \
	sim/bounds.c \
	sim/bounds.h \
	sim/causes.c \
	sim/causes.h \
	sim/cost.c \
	sim/cost.h \
	sim/cost_comm.c \
	sim/cost_formula.h \
	sim/cost_left.c \
	sim/cost_left.h \
	sim/cost_ops.c \
	sim/cost_range.c \
	sim/cost_range.h \
	sim/cost_unit.c \
	sim/critical_path.c \
	sim/critical_path.h \
	sim/engine.c \
	sim/engine.h \
	sim/engine_inner.h \
	sim/engine_run.c \
	sim/engine_wire.c \
	sim/finalists.c \
	sim/finalists.h \
	sim/interval_set.c \
	sim/interval_set.h \
	sim/judge.c \
	sim/judge.h \
	sim/judge_pool.c \
	sim/judge_pool.h \
	sim/paired.c \
	sim/paired.h \
	sim/milp_judge.c \
	sim/milp_judge.h \
	sim/point_set.c \
	sim/point_set.h \
	sim/search.c \
	sim/search.h \
	sim/simulate.c \
	sim/simulate.h \
	sim/space.c \
	sim/space.h \
	sim/space_moves.c \
	sim/space_text.c \
	sim/stalls.c \
	sim/stalls.h \
	sim/timed_memory.c \
	sim/timed_memory.h \
	sim/unit_cost.c \
	sim/unit_cost.h \
	sim/what_if.c \
	sim/what_if.h \
	sim/withheld.c \
	sim/withheld.h \
	sim/without.c \
	sim/without.h

# Clusters are JSON files to edit and strings in the program; --cluster FILE reads one at run time.
# src/cluster.c has the table and parses; it includes the strings.
clusters = \
	sim/clusters/h100-sxm.json \
	sim/clusters/h100-96g-500w.json \
	sim/clusters/h200-sxm.json \
	sim/clusters/b200-sxm.json \
	sim/clusters/gb200.json \
	sim/clusters/a100-sxm-80g.json \
	sim/clusters/a100-sxm-40g.json \
	sim/clusters/toy.json
src/clusters.inc: $(clusters)
	@$(MKDIR_P) src
	$(AM_V_GEN)for f in $(clusters); do \
	  g=$$f; test -f $$g || g=$(srcdir)/$$f; \
	  echo "{ \"`basename $$f .json`\","; $(AS_C_STRING) $$g; echo "},"; done > $@.tmp && mv -f $@.tmp $@
src/cluster.$(OBJEXT): src/clusters.inc
CLEANFILES += src/clusters.inc
EXTRA_DIST += $(clusters)
