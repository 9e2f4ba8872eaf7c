bin_PROGRAMS += unshard
unshard_SOURCES = src/cli/main.c
unshard_LDADD = src/libcli.a $(unshard_libs)

# All commands, so that tests can link what they judge.
noinst_LIBRARIES += src/libcli.a
src_libcli_a_SOURCES = \
	src/cli/bench.c \
	src/cli/bench.h \
	src/cli/bench_folder.c \
	src/cli/bench_host.c \
	src/cli/bench_host.h \
	src/cli/bench_pack.c \
	src/cli/bench_run.c \
	src/cli/bench_sim.c \
	src/cli/bench_step.c \
	src/cli/bench_store.c \
	src/cli/bench_trace.c \
	src/cli/calibrate.h \
	src/cli/calibrate_comm.c \
	src/cli/calibrate_device.c \
	src/cli/calibrate_host.c \
	src/cli/calibrate_ops.c \
	src/cli/cmd_bench.c \
	src/cli/cmd_calibrate.c \
	src/cli/cmd_check.c \
	src/cli/cmd_cluster.c \
	src/cli/cmd_compare.c \
	src/cli/cmd_explain.c \
	src/cli/cmd_history.c \
	src/cli/cmd_model.c \
	src/cli/cmd_plan.c \
	src/cli/cmd_query.c \
	src/cli/cmd_run.c \
	src/cli/cmd_sim.c \
	src/cli/cmd_trace.c \
	src/cli/cmd_validate.c \
	src/cli/command.h \
	src/cli/compare.c \
	src/cli/compare.h \
	src/cli/compare_json.c \
	src/cli/compare_text.c \
	src/cli/evaluate.c \
	src/cli/evaluate.h \
	src/cli/explain_json.c \
	src/cli/explain_report.h \
	src/cli/explain_text.c \
	src/cli/grid.c \
	src/cli/grid.h \
	src/cli/help.c \
	src/cli/help.h \
	src/cli/history.c \
	src/cli/history.h \
	src/cli/history_read.c \
	src/cli/model_shards.c \
	src/cli/model_shards.h \
	src/cli/option_table.c \
	src/cli/options.c \
	src/cli/options.h \
	src/cli/packing.c \
	src/cli/packing.h \
	src/cli/page.c \
	src/cli/page.h \
	src/cli/plan_axes.c \
	src/cli/plan_canvas.h \
	src/cli/plan_json.c \
	src/cli/plan_lists.c \
	src/cli/plan_lists.h \
	src/cli/plan_packing.c \
	src/cli/plan_plot.c \
	src/cli/plan_plot.h \
	src/cli/plan_progress.c \
	src/cli/plan_progress.h \
	src/cli/plan_rank.c \
	src/cli/plan_rank.h \
	src/cli/plan_report.h \
	src/cli/plan_row.h \
	src/cli/plan_scale.c \
	src/cli/plan_scale.h \
	src/cli/plan_table.c \
	src/cli/plan_text.c \
	src/cli/prepare.c \
	src/cli/prepare.h \
	src/cli/record.c \
	src/cli/record.h \
	src/cli/remedy.c \
	src/cli/remedy.h \
	src/cli/run_debug.c \
	src/cli/run_debug.h \
	src/cli/run_execute.c \
	src/cli/run_execute.h \
	src/cli/run_job.c \
	src/cli/run_job.h \
	src/cli/run_json.c \
	src/cli/run_record.c \
	src/cli/run_report.c \
	src/cli/run_report.h \
	src/cli/run_text.c \
	src/cli/sim_json.c \
	src/cli/sim_report.h \
	src/cli/sim_text.c \
	src/cli/stored_run.c \
	src/cli/stored_run.h \
	src/cli/term.c \
	src/cli/term.h \
	src/cli/validate.c \
	src/cli/validate.h \
	src/cli/validate_command.c \
	src/cli/validate_diagnosis.c \
	src/cli/validate_habits.c \
	src/cli/validate_json.c \
	src/cli/validate_markdown.c \
	src/cli/validate_stats.c \
	src/cli/validate_text.c

noinst_LIBRARIES += src/libcore.a
src_libcore_a_SOURCES = \
	src/alloc.c \
	src/alloc.h \
	src/alloc_bins.c \
	src/alloc_bins.h \
	src/alloc_expandable.c \
	src/alloc_inner.h \
	src/alloc_segments.c \
	src/arch/arch.c \
	src/arch/arch.h \
	src/arch/arch_config.c \
	src/arch/arch_config.h \
	src/arch/block.c \
	src/arch/block.h \
	src/arch/block_parts.c \
	src/arch/block_parts.h \
	src/arch/body_tensors.h \
	src/arch/gpt2.c \
	src/arch/gpt_bodies.c \
	src/arch/kda.c \
	src/arch/kda_bodies.c \
	src/arch/llama.c \
	src/arch/llama_bodies.c \
	src/arch/lora_parts.c \
	src/arch/lora_parts.h \
	src/arch/mpt.c \
	src/arch/outer_bodies.c \
	src/arch/outer_bodies.h \
	src/arch/native_bodies.c \
	src/arch/native_kda.c \
	src/arch/native_outer.c \
	src/arch/native_parts.h \
	src/arch/parameters.c \
	src/arch/simple_bodies.c \
	src/arch/simple_llm.c \
	src/arena.c \
	src/arena.h \
	src/backend.h \
	src/body.c \
	src/body.h \
	src/body_autograd.c \
	src/body_builder.c \
	src/body_builder.h \
	src/body_operands.c \
	src/body_tape.c \
	src/body_walk.h \
	src/builtin_models.c \
	src/cluster.c \
	src/cluster.h \
	src/cluster_file.c \
	src/cluster_file.h \
	src/cluster_json.c \
	src/cluster_json.h \
	src/cluster_prices.c \
	src/cluster_reader.c \
	src/cluster_reader.h \
	src/csv.c \
	src/csv.h \
	src/dtype.c \
	src/dtype.h \
	src/eligible.c \
	src/eligible.h \
	src/err.c \
	src/err.h \
	src/exec.c \
	src/exec.h \
	src/expand.c \
	src/expand.h \
	src/hash.h \
	src/json.c \
	src/json.h \
	src/json_check.c \
	src/json_check.h \
	src/json_write.c \
	src/layout.c \
	src/layout.h \
	src/lora.c \
	src/lora.h \
	src/measured.c \
	src/measured.h \
	src/memory_class.h \
	src/memory_curve.c \
	src/memory_curve.h \
	src/model.c \
	src/model.h \
	src/model_builder.c \
	src/model_builder.h \
	src/model_json.c \
	src/model_json.h \
	src/model_tensors.c \
	src/model_tensors.h \
	src/place.c \
	src/place.h \
	src/place_pass.c \
	src/place_pass.h \
	src/plan.c \
	src/plan.h \
	src/plan_by_dtype.c \
	src/plan_by_dtype.h \
	src/plan_check.c \
	src/plan_check.h \
	src/plan_cut.c \
	src/plan_cut.h \
	src/plan_cut_inner.h \
	src/plan_merge.c \
	src/plan_merge.h \
	src/plan_modules.c \
	src/plan_modules.h \
	src/plan_ranks.c \
	src/plan_ranks.h \
	src/plan_refuse.c \
	src/plan_schemes.c \
	src/plan_system.c \
	src/plan_system.h \
	src/plan_schemes.h \
	src/plan_units.c \
	src/plan_units.h \
	src/policy.c \
	src/policy.h \
	src/program.c \
	src/program.h \
	src/program_builder.c \
	src/program_builder.h \
	src/program_print.c \
	src/program_print.h \
	src/run.c \
	src/run.h \
	src/safetensors.c \
	src/safetensors.h \
	src/safetensors_index.c \
	src/safetensors_write.c \
	src/schedule/accumulate.c \
	src/schedule/border.c \
	src/schedule/compute.c \
	src/schedule/divide.c \
	src/schedule/divide.h \
	src/schedule/flat.c \
	src/schedule/flat_birth.c \
	src/schedule/fsdp1.c \
	src/schedule/fsdp1.h \
	src/schedule/fsdp2.c \
	src/schedule/fsdp2.h \
	src/schedule/optimizer.c \
	src/schedule/pieces.c \
	src/schedule/pieces.h \
	src/schedule/post_reduce.c \
	src/schedule/reduce.c \
	src/schedule/system.c \
	src/schedule/system.h \
	src/schedule/unshard.c \
	src/schedule/walk.c \
	src/summary.c \
	src/summary.h \
	src/text.c \
	src/text.h \
	src/verify.c \
	src/verify.h \
	src/verify_body.c \
	src/verify_fault.c \
	src/verify_inner.h \
	src/verify_operands.c

# The libraries in link order: users first, then what they use.
own_libs = sim/libsim.a gpu/libgpu.a traces/libtraces.a db/libdb.a src/libcore.a
outside_libs = $(SQLITE_LIBS) $(CJSON_LIBS) $(ZLIB_LIBS) $(OPENBLAS_LIBS) $(MPI_LIBS) -lm -lpthread
unshard_libs = $(own_libs) $(CUDA_LIBS) $(outside_libs)

# Remade only when the version changes; needed by one file alone.
src/version.h: FORCE
	@$(MKDIR_P) src; \
	printf '#define UNSHARD_VERSION "%s"\n' "`sh $(srcdir)/src/version.sh`" > $@.tmp; \
	cmp -s $@.tmp $@ 2>/dev/null && rm -f $@.tmp || mv -f $@.tmp $@
FORCE:
.PHONY: FORCE
src/cli/main.$(OBJEXT): src/version.h
CLEANFILES += src/version.h
EXTRA_DIST += src/version.sh

dist_man_MANS += src/unshard.1
bashcompdir = $(datadir)/bash-completion/completions
dist_bashcomp_DATA = src/unshard.bash
