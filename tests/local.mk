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
	TSAN_OPTIONS='$(TSAN_OPTIONS):halt_on_error=1:atexit_sleep_ms=0'; export TSAN_OPTIONS; \
	XDG_DATA_HOME='$(abs_top_builddir)/tests/data'; export XDG_DATA_HOME; \
	LC_ALL=C; export LC_ALL;

# TAP, and what several tests share.
check_LIBRARIES += tests/libtest.a
tests_libtest_a_SOURCES = \
	tests/asked.c \
	tests/asked.h \
	tests/body_make.c \
	tests/body_make.h \
	tests/checkpoint_rig.c \
	tests/checkpoint_rig.h \
	tests/closure.c \
	tests/closure.h \
	tests/closure_walk.c \
	tests/compare_numbers.c \
	tests/compare_numbers.h \
	tests/device_rig.c \
	tests/device_rig.h \
	tests/engine_rig.c \
	tests/engine_rig.h \
	tests/fake_backend.c \
	tests/fake_backend.h \
	tests/line_diff.c \
	tests/line_diff.h \
	tests/make.c \
	tests/make.h \
	tests/number.c \
	tests/number.h \
	tests/op_reference.c \
	tests/op_reference.h \
	tests/op_trial.c \
	tests/op_trial.h \
	tests/oracle_compare.c \
	tests/oracle_compare.h \
	tests/oracle_event.c \
	tests/oracle_event.h \
	tests/oracle_folder.c \
	tests/oracle_folder.h \
	tests/oracle_numbers.c \
	tests/oracle_numbers.h \
	tests/oracle_peaks.c \
	tests/oracle_peaks.h \
	tests/oracle_plan.c \
	tests/oracle_project.c \
	tests/oracle_project.h \
	tests/oracle_read.c \
	tests/oracle_read.h \
	tests/oracle_rows.c \
	tests/oracle_rows.h \
	tests/outcome_rig.c \
	tests/outcome_rig.h \
	tests/pack_rig.c \
	tests/pack_rig.h \
	tests/pack_watch.c \
	tests/plan_rig.c \
	tests/plan_rig.h \
	tests/quoted.c \
	tests/quoted.h \
	tests/ranks_rig.c \
	tests/ranks_rig.h \
	tests/real_case.c \
	tests/real_case.h \
	tests/real_judge.c \
	tests/real_judge.h \
	tests/real_plans.c \
	tests/real_plans.h \
	tests/real_rig.c \
	tests/real_rig.h \
	tests/reference/ref_attention.c \
	tests/reference/ref_delta.c \
	tests/reference/ref_delta_rule.c \
	tests/reference/ref_gpt2.c \
	tests/reference/ref_kda.c \
	tests/reference/ref_llama.c \
	tests/reference/ref_model.c \
	tests/reference/ref_model.h \
	tests/reference/ref_ops.c \
	tests/reference/ref_ops.h \
	tests/reference/ref_tape.c \
	tests/reference/ref_tape.h \
	tests/reference/ref_train.c \
	tests/reference/reference.h \
	tests/reference_rig.c \
	tests/reference_rig.h \
	tests/run_make.c \
	tests/run_make.h \
	tests/run_make_real.c \
	tests/slow_alloc.c \
	tests/slow_alloc.h \
	tests/slow_cast.c \
	tests/slow_cast.h \
	tests/slow_engine.c \
	tests/slow_engine.h \
	tests/slow_memory.c \
	tests/slow_path.c \
	tests/slow_path.h \
	tests/store_rig.c \
	tests/store_rig.h \
	tests/tap.c \
	tests/tap.h \
	tests/tiny.c \
	tests/tiny.h \
	tests/trace_run.c \
	tests/trace_run.h
LDADD = tests/libtest.a src/libcli.a $(unshard_libs)

c_tests = \
	tests/ablation.t \
	tests/accuracy.t \
	tests/alive.t \
	tests/alloc_fuzz.t \
	tests/alloc_repeat.t \
	tests/alloc_vectors.t \
	tests/arena.t \
	tests/bodies.t \
	tests/body_every.t \
	tests/body_frozen.t \
	tests/body_gpt.t \
	tests/body_kda.t \
	tests/body_lora.t \
	tests/body_native.t \
	tests/body_ops.t \
	tests/body_parameters.t \
	tests/body_recompute.t \
	tests/body_simple.t \
	tests/checkpoint.t \
	tests/checkpoint_faults.t \
	tests/chrome.t \
	tests/chrome_groups.t \
	tests/chrome_random.t \
	tests/cluster.t \
	tests/cluster_hosts.t \
	tests/collective_fit.t \
	tests/compare.t \
	tests/convert.t \
	tests/cost.t \
	tests/cost_comm.t \
	tests/cost_data.t \
	tests/cost_formula.t \
	tests/cost_range.t \
	tests/cost_unit.t \
	tests/csv.t \
	tests/divisors.t \
	tests/eligible.t \
	tests/emit_python.t \
	tests/engine.t \
	tests/engine_comms.t \
	tests/engine_random.t \
	tests/exec.t \
	tests/factor_fit.t \
	tests/fsdp1.t \
	tests/fsdp1_measured.t \
	tests/fsdp1_oracle.t \
	tests/fsdp1_random.t \
	tests/host_collectives.t \
	tests/host_failures.t \
	tests/host_segments.t \
	tests/host_shm.t \
	tests/host_streams.t \
	tests/host_tcp.t \
	tests/host_update.t \
	tests/json.t \
	tests/kinds.t \
	tests/kineto.t \
	tests/knob_hashes.t \
	tests/knobs.t \
	tests/lora.t \
	tests/measured.t \
	tests/measured_row.t \
	tests/memory_curve.t \
	tests/memory_published.t \
	tests/mixed.t \
	tests/milp_judge.t \
	tests/model.t \
	tests/model_config.t \
	tests/model_families.t \
	tests/model_json.t \
	tests/native_tapes.t \
	tests/nccl_tests.t \
	tests/ops_attention.t \
	tests/ops_kda.t \
	tests/ops_linear.t \
	tests/ops_model.t \
	tests/ops_store.t \
	tests/oracle.t \
	tests/oracle_mutate.t \
	tests/oracle_values.t \
	tests/pack_cast.t \
	tests/pack_post.t \
	tests/pace.t \
	tests/pack_random.t \
	tests/pack_table.t \
	tests/pack_vectors.t \
	tests/paired.t \
	tests/place.t \
	tests/place_random.t \
	tests/plan.t \
	tests/plan_errors.t \
	tests/plan_picture.t \
	tests/plan_property.t \
	tests/judge.t \
	tests/judge_heap.t \
	tests/space.t \
	tests/bounds.t \
	tests/search.t \
	tests/search_large.t \
	tests/search_planted.t \
	tests/plan_merge.t \
	tests/plan_random.t \
	tests/plan_rank.t \
	tests/program.t \
	tests/query.t \
	tests/query_views.t \
	tests/real_agree.t \
	tests/real_dtypes.t \
	tests/real_jitter.t \
	tests/real_memory.t \
	tests/real_numbers.t \
	tests/real_oracle.t \
	tests/real_order.t \
	tests/real_waits.t \
	tests/reduce_ranks.t \
	tests/real_policies.t \
	tests/real_random.t \
	tests/real_same.t \
	tests/real_scaler.t \
	tests/reference_gradients.t \
	tests/reference_oracle.t \
	tests/reference_values.t \
	tests/resume_faults.t \
	tests/safetensors.t \
	tests/safetensors_write.t \
	tests/simulate.t \
	tests/stalls.t \
	tests/store.t \
	tests/store_candidates.t \
	tests/store_crowd.t \
	tests/stand_in.t \
	tests/step_graph.t \
	tests/store_faults.t \
	tests/store_migrate.t \
	tests/summary.t \
	tests/term.t \
	tests/text.t \
	tests/timed_memory.t \
	tests/toy.t \
	tests/trace_check.t \
	tests/trace_files.t \
	tests/trace_fuzz.t \
	tests/trace_json.t \
	tests/verify.t \
	tests/verify_waits.t \
	tests/what_if.t
check_PROGRAMS += $(c_tests)
tests_ablation_t_SOURCES = tests/ablation.c
tests_accuracy_t_SOURCES = tests/accuracy.c
tests_alive_t_SOURCES = tests/alive.c
tests_alloc_fuzz_t_SOURCES = tests/alloc_fuzz.c
tests_alloc_repeat_t_SOURCES = tests/alloc_repeat.c
tests_alloc_vectors_t_SOURCES = tests/alloc_vectors.c
tests_arena_t_SOURCES = tests/arena.c
tests_bodies_t_SOURCES = tests/bodies.c
tests_body_every_t_SOURCES = tests/body_every.c
tests_body_frozen_t_SOURCES = tests/body_frozen.c
tests_body_gpt_t_SOURCES = tests/body_gpt.c
tests_body_kda_t_SOURCES = tests/body_kda.c
tests_body_lora_t_SOURCES = tests/body_lora.c
tests_body_native_t_SOURCES = tests/body_native.c
tests_body_ops_t_SOURCES = tests/body_ops.c
tests_body_parameters_t_SOURCES = tests/body_parameters.c
tests_body_recompute_t_SOURCES = tests/body_recompute.c
tests_body_simple_t_SOURCES = tests/body_simple.c
tests_checkpoint_t_SOURCES = tests/checkpoint.c
tests_checkpoint_faults_t_SOURCES = tests/checkpoint_faults.c
tests_chrome_t_SOURCES = tests/chrome.c
tests_chrome_groups_t_SOURCES = tests/chrome_groups.c
tests_chrome_random_t_SOURCES = tests/chrome_random.c
tests_cluster_t_SOURCES = tests/cluster.c
tests_cluster_hosts_t_SOURCES = tests/cluster_hosts.c
tests_collective_fit_t_SOURCES = tests/collective_fit.c
tests_compare_t_SOURCES = tests/compare.c
tests_convert_t_SOURCES = tests/convert.c
tests_cost_t_SOURCES = tests/cost.c
tests_cost_comm_t_SOURCES = tests/cost_comm.c
tests_cost_data_t_SOURCES = tests/cost_data.c
tests_cost_formula_t_SOURCES = tests/cost_formula.c
tests_cost_range_t_SOURCES = tests/cost_range.c
tests_cost_unit_t_SOURCES = tests/cost_unit.c
tests_csv_t_SOURCES = tests/csv.c
tests_divisors_t_SOURCES = tests/divisors.c
tests_eligible_t_SOURCES = tests/eligible.c
tests_emit_python_t_SOURCES = tests/emit_python.c
tests_engine_t_SOURCES = tests/engine.c
tests_engine_comms_t_SOURCES = tests/engine_comms.c
tests_engine_random_t_SOURCES = tests/engine_random.c
tests_exec_t_SOURCES = tests/exec.c
tests_factor_fit_t_SOURCES = tests/factor_fit.c
tests_fsdp1_t_SOURCES = tests/fsdp1.c
tests_fsdp1_measured_t_SOURCES = tests/fsdp1_measured.c
tests_fsdp1_oracle_t_SOURCES = tests/fsdp1_oracle.c
tests_fsdp1_random_t_SOURCES = tests/fsdp1_random.c
tests_host_collectives_t_SOURCES = tests/host_collectives.c
tests_host_failures_t_SOURCES = tests/host_failures.c
tests_host_segments_t_SOURCES = tests/host_segments.c
tests_host_shm_t_SOURCES = tests/host_shm.c
tests_host_streams_t_SOURCES = tests/host_streams.c
tests_host_tcp_t_SOURCES = tests/host_tcp.c
tests_host_update_t_SOURCES = tests/host_update.c
tests_json_t_SOURCES = tests/json.c
tests_kinds_t_SOURCES = tests/kinds.c
tests_kineto_t_SOURCES = tests/kineto.c
tests_knob_hashes_t_SOURCES = tests/knob_hashes.c
tests_knobs_t_SOURCES = tests/knobs.c
tests_lora_t_SOURCES = tests/lora.c
tests_measured_t_SOURCES = tests/measured.c
tests_measured_row_t_SOURCES = tests/measured_row.c
tests_memory_curve_t_SOURCES = tests/memory_curve.c
tests_memory_published_t_SOURCES = tests/memory_published.c
tests_mixed_t_SOURCES = tests/mixed.c
tests_milp_judge_t_SOURCES = tests/milp_judge.c
tests_model_t_SOURCES = tests/model.c
tests_model_config_t_SOURCES = tests/model_config.c
tests_model_families_t_SOURCES = tests/model_families.c
tests_model_json_t_SOURCES = tests/model_json.c
tests_native_tapes_t_SOURCES = tests/native_tapes.c
tests_nccl_tests_t_SOURCES = tests/nccl_tests.c
tests_ops_attention_t_SOURCES = tests/ops_attention.c
tests_ops_kda_t_SOURCES = tests/ops_kda.c
tests_ops_linear_t_SOURCES = tests/ops_linear.c
tests_ops_model_t_SOURCES = tests/ops_model.c
tests_ops_store_t_SOURCES = tests/ops_store.c
tests_oracle_t_SOURCES = tests/oracle.c
tests_oracle_mutate_t_SOURCES = tests/oracle_mutate.c
tests_oracle_values_t_SOURCES = tests/oracle_values.c
tests_pack_cast_t_SOURCES = tests/pack_cast.c
tests_pack_post_t_SOURCES = tests/pack_post.c
tests_pace_t_SOURCES = tests/pace.c
tests_pack_random_t_SOURCES = tests/pack_random.c
tests_pack_table_t_SOURCES = tests/pack_table.c
tests_pack_vectors_t_SOURCES = tests/pack_vectors.c
tests_paired_t_SOURCES = tests/paired.c
tests_place_t_SOURCES = tests/place.c
tests_place_random_t_SOURCES = tests/place_random.c
tests_plan_t_SOURCES = tests/plan.c
tests_plan_errors_t_SOURCES = tests/plan_errors.c
tests_plan_picture_t_SOURCES = tests/plan_picture.c
tests_plan_property_t_SOURCES = tests/plan_property.c
tests_judge_t_SOURCES = tests/judge.c
tests_judge_heap_t_SOURCES = tests/judge_heap.c
tests_judge_heap_t_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc
tests_space_t_SOURCES = tests/space.c
tests_bounds_t_SOURCES = tests/bounds.c
tests_search_t_SOURCES = tests/search.c
tests_search_large_t_SOURCES = tests/search_large.c
tests_search_planted_t_SOURCES = tests/search_planted.c
tests_plan_merge_t_SOURCES = tests/plan_merge.c
tests_plan_random_t_SOURCES = tests/plan_random.c
tests_plan_rank_t_SOURCES = tests/plan_rank.c
tests_program_t_SOURCES = tests/program.c
tests_query_t_SOURCES = tests/query.c
tests_query_views_t_SOURCES = tests/query_views.c
tests_real_agree_t_SOURCES = tests/real_agree.c
tests_real_dtypes_t_SOURCES = tests/real_dtypes.c
tests_real_jitter_t_SOURCES = tests/real_jitter.c
tests_real_memory_t_SOURCES = tests/real_memory.c
tests_real_numbers_t_SOURCES = tests/real_numbers.c
tests_real_oracle_t_SOURCES = tests/real_oracle.c
tests_real_order_t_SOURCES = tests/real_order.c
tests_real_waits_t_SOURCES = tests/real_waits.c
tests_real_policies_t_SOURCES = tests/real_policies.c
tests_real_random_t_SOURCES = tests/real_random.c
tests_real_same_t_SOURCES = tests/real_same.c
tests_real_scaler_t_SOURCES = tests/real_scaler.c
tests_reduce_ranks_t_SOURCES = tests/reduce_ranks.c
tests_reference_gradients_t_SOURCES = tests/reference_gradients.c
tests_reference_oracle_t_SOURCES = tests/reference_oracle.c
tests_reference_values_t_SOURCES = tests/reference_values.c
tests_resume_faults_t_SOURCES = tests/resume_faults.c
tests_safetensors_t_SOURCES = tests/safetensors.c
tests_safetensors_write_t_SOURCES = tests/safetensors_write.c
tests_simulate_t_SOURCES = tests/simulate.c
tests_stalls_t_SOURCES = tests/stalls.c
tests_store_t_SOURCES = tests/store.c
tests_store_candidates_t_SOURCES = tests/store_candidates.c
tests_store_crowd_t_SOURCES = tests/store_crowd.c
tests_stand_in_t_SOURCES = tests/stand_in.c tests/stand_in_trial.h
tests_step_graph_t_SOURCES = tests/step_graph.c
tests_store_faults_t_SOURCES = tests/store_faults.c
tests_store_migrate_t_SOURCES = tests/store_migrate.c
tests_summary_t_SOURCES = tests/summary.c
tests_term_t_SOURCES = tests/term.c
tests_text_t_SOURCES = tests/text.c
tests_timed_memory_t_SOURCES = tests/timed_memory.c
tests_toy_t_SOURCES = tests/toy.c
tests_trace_check_t_SOURCES = tests/trace_check.c
tests_trace_files_t_SOURCES = tests/trace_files.c
tests_trace_fuzz_t_SOURCES = tests/trace_fuzz.c
tests_trace_json_t_SOURCES = tests/trace_json.c
tests_verify_t_SOURCES = tests/verify.c
tests_verify_waits_t_SOURCES = tests/verify_waits.c
tests_what_if_t_SOURCES = tests/what_if.c
# Not a test: writes a history for tests in sh.
check_PROGRAMS += tests/history_make
tests_history_make_SOURCES = tests/history_make.c

# Not a test: writes traces for tests/trace_python.sh.
check_PROGRAMS += tests/trace_make
tests_trace_make_SOURCES = tests/trace_make.c

# The CUDA device over a CUDA of the host's: its kernels by a C++ compiler, in place of nvcc's.
if WITH_CUDA
fake_kernels = \
	tests/kernels_cuda_ops.$(OBJEXT) \
	tests/kernels_cuda_pack.$(OBJEXT) \
	tests/kernels_cuda_stand_in.$(OBJEXT) \
	tests/kernels_cuda_step.$(OBJEXT)
fake_sources = \
	tests/fake_cublas.c \
	tests/fake_cuda.c \
	tests/fake_cuda.h \
	tests/fake_inner.h \
	tests/fake_kernel.cuh \
	tests/fake_library.c \
	tests/fake_nccl.c \
	tests/fake_stream.c
fake_libs = tests/libtest.a src/libcli.a $(own_libs) $(outside_libs) -lstdc++
tests/kernels_%.$(OBJEXT): gpu/%.cu
	@$(MKDIR_P) $(@D)
	$(AM_V_CXX)$(CXX) -std=c++17 -I$(top_builddir) -I$(top_srcdir) $(CUDA_CPPFLAGS) -Wall -Wextra \
	  $(SAN_FLAGS) $(CXXFLAGS) -ffp-contract=off -include $(top_srcdir)/tests/fake_kernel.cuh \
	  -x c++ -MD -MP -MF $@.d -c -o $@ $<
-include $(wildcard tests/kernels_*.d)
check_PROGRAMS += $(cuda_tests)
cuda_tests = \
	tests/cuda_calibrate.t \
	tests/cuda_check.t \
	tests/cuda_emulated.t \
	tests/cuda_faults.t \
	tests/cuda_graph.t \
	tests/cuda_launched.t \
	tests/cuda_ops_attention.t \
	tests/cuda_ops_kda.t \
	tests/cuda_ops_linear.t \
	tests/cuda_ops_model.t \
	tests/cuda_order.t \
	tests/cuda_run.t \
	tests/cuda_stand_in.t \
	tests/cuda_stored.t
tests_cuda_calibrate_t_SOURCES = tests/cuda_calibrate.c $(fake_sources)
tests_cuda_calibrate_t_LDADD = $(fake_kernels) $(fake_libs)
tests_cuda_check_t_SOURCES = tests/cuda_check.c $(fake_sources)
tests_cuda_check_t_LDADD = $(fake_kernels) $(fake_libs)
tests_cuda_faults_t_SOURCES = tests/cuda_faults.c $(fake_sources)
tests_cuda_faults_t_LDADD = $(fake_kernels) $(fake_libs)
tests_cuda_stored_t_SOURCES = tests/cuda_stored.c $(fake_sources)
tests_cuda_stored_t_LDADD = $(fake_kernels) $(fake_libs)
tests_cuda_emulated_t_SOURCES = tests/cuda_emulated.c $(fake_sources)
tests_cuda_emulated_t_LDADD = $(fake_kernels) $(fake_libs)
tests_cuda_stand_in_t_SOURCES = tests/stand_in.c tests/cuda_stand_in_trial.c tests/stand_in_trial.h $(fake_sources)
tests_cuda_stand_in_t_LDADD = $(fake_kernels) $(fake_libs)
tests_cuda_graph_t_SOURCES = tests/cuda_graph.c $(fake_sources)
tests_cuda_graph_t_LDADD = $(fake_kernels) $(fake_libs)
tests_cuda_launched_t_SOURCES = tests/cuda_launched.c $(fake_sources)
tests_cuda_launched_t_LDADD = $(fake_kernels) $(fake_libs)
tests_cuda_order_t_SOURCES = tests/cuda_order.c $(fake_sources)
tests_cuda_order_t_LDADD = $(fake_kernels) $(fake_libs)
tests_cuda_run_t_SOURCES = tests/cuda_run.c $(fake_sources)
tests_cuda_run_t_LDADD = $(fake_kernels) $(fake_libs)
tests_cuda_ops_attention_t_SOURCES = tests/ops_attention.c tests/cuda_trial.c $(fake_sources)
tests_cuda_ops_attention_t_LDADD = $(fake_kernels) $(fake_libs)
tests_cuda_ops_kda_t_SOURCES = tests/ops_kda.c tests/cuda_trial.c $(fake_sources)
tests_cuda_ops_kda_t_LDADD = $(fake_kernels) $(fake_libs)
tests_cuda_ops_linear_t_SOURCES = tests/ops_linear.c tests/cuda_trial.c $(fake_sources)
tests_cuda_ops_linear_t_LDADD = $(fake_kernels) $(fake_libs)
tests_cuda_ops_model_t_SOURCES = tests/ops_model.c tests/cuda_trial.c $(fake_sources)
tests_cuda_ops_model_t_LDADD = $(fake_kernels) $(fake_libs)
check_PROGRAMS += tests/unshard_fake
tests_unshard_fake_SOURCES = src/cli/main.c tests/fake_main.c $(fake_sources)
tests_unshard_fake_LDADD = $(fake_kernels) $(fake_libs)
TESTS += $(cuda_tests)
check-cuda: all $(cuda_tests) tests/unshard_fake
	$(MAKE) $(AM_MAKEFLAGS) check-TESTS TESTS='$(cuda_tests) tests/cuda_command.sh'
endif

# A rank of tests/host_mpi.sh.
if WITH_MPI
check_PROGRAMS += tests/host_mpi
tests_host_mpi_SOURCES = tests/host_mpi.c
endif

sh_tests = \
	tests/bench.sh \
	tests/calibrate.sh \
	tests/calibrate_nccl.sh \
	tests/calibrate_runs.sh \
	tests/calibrate_trace.sh \
	tests/check_command.sh \
	tests/cli.sh \
	tests/compare_command.sh \
	tests/cuda_casts.sh \
	tests/cuda_command.sh \
	tests/cuda_shim.sh \
	tests/cuda_static.sh \
	tests/device_command.sh \
	tests/device_torch.sh \
	tests/docs.sh \
	tests/emit_torch.sh \
	tests/explain_command.sh \
	tests/fsdp1_command.sh \
	tests/history.sh \
	tests/host_mpi.sh \
	tests/includes.sh \
	tests/listed.sh \
	tests/names.sh \
	tests/overlap_command.sh \
	tests/plan_command.sh \
	tests/plan_file.sh \
	tests/plan_questions.sh \
	tests/plan_search.sh \
	tests/query_command.sh \
	tests/range_command.sh \
	tests/run_command.sh \
	tests/run_emulated.sh \
	tests/run_failures.sh \
	tests/run_mpi.sh \
	tests/run_rendezvous.sh \
	tests/trace_command.sh \
	tests/trace_python.sh \
	tests/trace_show.sh \
	tests/validate.sh \
	tests/without_command.sh
dist_check_SCRIPTS += $(sh_tests)
TESTS += $(c_tests) $(sh_tests)
EXTRA_DIST += tests/emit_judge.py tests/emit_stub.py
EXTRA_DIST += tests/accuracy.txt tests/must_predict.txt tests/runs.csv
EXTRA_DIST += tests/cuda_casts.c tests/cuda_shim.c tests/cuda_shim.cuh
EXTRA_DIST += tests/mutate_pack.awk tests/mutate_pack.sh tests/mutate_pack.txt tests/mutate_pack_planted.txt
EXTRA_DIST += tests/tap.sh tests/search_large.json tests/command_rig.sh tests/history_1.sql tests/history_2.sql tests/history_3.sql tests/history_4.sql tests/history_5.sql tests/history_6.sql
EXTRA_DIST += tests/oracle/fsdp1-torch-2.11.0-fake-8.json tests/oracle/record_fsdp1.py
EXTRA_DIST += \
	tests/oracle/README.md \
	tests/oracle/record.py \
	tests/oracle/pytorch-tests-accumulation.json \
	tests/oracle/pytorch-tests-comm.json \
	tests/oracle/pytorch-tests-divide.json \
	tests/oracle/pytorch-tests-memory.json \
	tests/oracle/torch-2.11.0-fake-8.json \
	tests/oracle/torch-2.11.0-gloo-1.json \
	tests/oracle/torch-2.11.0-gloo-2.json \
	tests/oracle/torch-2.11.0-gloo-4.json \
	tests/oracle/torch-2.15.0-fake-8.json \
	tests/oracle/torch-2.15.0-gloo-1.json \
	tests/oracle/torch-2.15.0-gloo-2.json \
	tests/oracle/torch-2.15.0-gloo-4.json
EXTRA_DIST += \
	tests/kineto_count.py \
	tests/trace_recount.py \
	tests/golden/compare-failed.json \
	tests/golden/compare-failed.txt \
	tests/golden/compare-other.json \
	tests/golden/compare-other.txt \
	tests/golden/compare-real.json \
	tests/golden/compare-real.txt \
	tests/golden/first-step-only.txt \
	tests/golden/knob-all-reduce.txt \
	tests/golden/knob-alone.txt \
	tests/golden/knob-behavior-2.15-frozen.txt \
	tests/golden/knob-behavior-2.15.txt \
	tests/golden/knob-behavior-unshard.txt \
	tests/golden/knob-by-dtype.txt \
	tests/golden/knob-clip.txt \
	tests/golden/knob-divide-factor-alone.txt \
	tests/golden/knob-divide-factor.txt \
	tests/golden/knob-force-sum.txt \
	tests/golden/knob-fsdp1-forward-prefetch.txt \
	tests/golden/knob-fsdp1-grad-op.txt \
	tests/golden/knob-fsdp1-limit.txt \
	tests/golden/knob-fsdp1-clip.txt \
	tests/golden/knob-fsdp1-pad-grads.txt \
	tests/golden/knob-fsdp1-post.txt \
	tests/golden/knob-fsdp1-record-stream.txt \
	tests/golden/knob-fsdp1-use-orig-params.txt \
	tests/golden/knob-freeze-all-but-q.txt \
	tests/golden/knob-freeze-embedding.txt \
	tests/golden/knob-host-sync.txt \
	tests/golden/knob-ignore.txt \
	tests/golden/knob-keep-fp32-2.15.0.txt \
	tests/golden/knob-keep-fp32-2.15.txt \
	tests/golden/knob-keep-fp32-unshard.txt \
	tests/golden/knob-keep-fp32.txt \
	tests/golden/knob-last-backward.txt \
	tests/golden/knob-log-loss.txt \
	tests/golden/knob-no-unshard-backward.txt \
	tests/golden/knob-no-reshard.txt \
	tests/golden/knob-none.txt \
	tests/golden/knob-output-dtype.txt \
	tests/golden/knob-pack-stream.txt \
	tests/golden/knob-precast.txt \
	tests/golden/knob-prefetch-backward.txt \
	tests/golden/knob-prefetch.txt \
	tests/golden/knob-reduce-bf16.txt \
	tests/golden/knob-reduce-fp16.txt \
	tests/golden/knob-reduce-inputs.txt \
	tests/golden/knob-replicas.txt \
	tests/golden/knob-reshard-all-but-last.txt \
	tests/golden/knob-reshard-backward.txt \
	tests/golden/knob-reshard-no.txt \
	tests/golden/knob-reshard-ranks.txt \
	tests/golden/knob-reshard-yes.txt \
	tests/golden/knob-scaler.txt \
	tests/golden/knob-second-mesh.txt \
	tests/golden/knob-separate-reduce-comm.txt \
	tests/golden/knob-shard-dim.txt \
	tests/golden/knob-storage-bf16.txt \
	tests/golden/knob-sync-fp32.txt \
	tests/golden/knob-sync.txt \
	tests/golden/knob-train-metrics.txt \
	tests/golden/knob-unused-zero.txt \
	tests/golden/llama-2-layers-fsdp1.txt \
	tests/golden/llama-1-layer-lora.txt \
	tests/golden/llama-2-layers-block-accum2.txt \
	tests/golden/llama-3-layers-torchtitan.txt \
	tests/golden/native-gpt-tiny-full.txt \
	tests/golden/native-kda-tiny.txt \
	tests/golden/native-llama-tiny.txt \
	tests/golden/plan-picture-none.txt \
	tests/golden/plan-picture.txt \
	tests/golden/plan-toy.txt \
	tests/golden/toy-views.txt \
	tests/golden/view-check.txt \
	tests/golden/view-collective.txt \
	tests/golden/view-exposed.txt \
	tests/golden/view-memory.txt \
	tests/golden/view-memory_peak.txt \
	tests/golden/view-rank.txt \
	tests/golden/view-real.txt \
	tests/golden/view-run.txt \
	tests/golden/view-step.txt \
	tests/golden/view-task.txt \
	tests/golden/view-unit.txt

# The device check (spec GPU 6) on the GPU of this machine, and the same on the host, with small sizes.
# DEVICE_CHECK: --core (the default, 3 minutes), --full (10), --out DIR. What another machine needs of it is in
# gpu-check-tree.
device_check_files = tests/device_check.sh tests/device_torch.py
dist_check_SCRIPTS += $(device_check_files)
EXTRA_DIST += tests/pack_library.c
host-check: all
	sh $(srcdir)/tests/device_check.sh --unshard ./unshard$(EXEEXT) --device host --full $(DEVICE_CHECK)
if WITH_CUDA
pack_library_sources = src/arena.c src/cli/device_unit.c src/dtype.c src/err.c gpu/pack_table.c tests/pack_library.c
tests/pack_library.so: $(pack_library_sources) gpu/cuda_pack.cu
	@$(MKDIR_P) tests/pic
	$(AM_V_GEN)for f in $(pack_library_sources); do \
	  $(CC) $(DEFS) $(DEFAULT_INCLUDES) $(AM_CPPFLAGS) $(CPPFLAGS) -O2 -ffp-contract=off -fPIC -c \
	    -o tests/pic/`basename $$f .c`.o $(srcdir)/$$f || exit 1; done && \
	$(NVCC_CMD) -Xcompiler -fPIC -c -o tests/pic/cuda_pack.o $(srcdir)/gpu/cuda_pack.cu && \
	$(NVCC) -shared -o $@ tests/pic/*.o
CLEANFILES += tests/pack_library.so
gpu-check-tree: all tests/pack_library.so
	@$(MKDIR_P) $@
	cp unshard$(EXEEXT) tests/pack_library.so $(addprefix $(srcdir)/,$(device_check_files)) $@
gpu-check: gpu-check-tree
	sh gpu-check-tree/device_check.sh --device cuda $(DEVICE_CHECK)
clean-local:
	-rm -rf gpu-check-tree tests/pic
endif

.PHONY: gpu-check gpu-check-tree host-check check-cuda check-valgrind prove check-summary check-headers
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
	@test -n "$(CUDA_CPPFLAGS)" || without='*/cuda_[il]*.h'; \
	for h in $(srcdir)/src/*.h $(srcdir)/src/*/*.h $(srcdir)/sim/*.h $(srcdir)/gpu/*.h $(srcdir)/traces/*.h \
	    $(srcdir)/db/*.h $(srcdir)/tests/*.h $(srcdir)/tests/reference/*.h; do \
	  case $$h in $${without:-none}) continue ;; esac; \
	  $(CC) $(DEFS) $(DEFAULT_INCLUDES) $(AM_CPPFLAGS) $(CPPFLAGS) -std=c11 -Wall -Wno-unused-function -Werror -fsyntax-only -x c $$h || exit 1; done
