# Real devices: the host's streams, kernels and transports.
noinst_LIBRARIES += gpu/libgpu.a
gpu_libgpu_a_SOURCES = \
	gpu/bell.c \
	gpu/bell.h \
	gpu/bind.c \
	gpu/bind.h \
	gpu/bind_body.c \
	gpu/bind_collective.c \
	gpu/bind_find.c \
	gpu/bind_give.c \
	gpu/bind_inner.h \
	gpu/bind_pack.c \
	gpu/bind_update.c \
	gpu/checkpoint.c \
	gpu/checkpoint.h \
	gpu/checkpoint_executor.c \
	gpu/checkpoint_inner.h \
	gpu/checkpoint_rank.c \
	gpu/checkpoint_state.c \
	gpu/convert.h \
	gpu/device.h \
	gpu/devices.c \
	gpu/devices.h \
	gpu/execute.c \
	gpu/execute.h \
	gpu/host_attention.c \
	gpu/host_attention.h \
	gpu/host_attention_dgrad.c \
	gpu/host_collective.c \
	gpu/host_decay.c \
	gpu/host_delta_rule.c \
	gpu/host_device.c \
	gpu/host_embedding.c \
	gpu/host_head_norm.c \
	gpu/host_inner.h \
	gpu/host_linear.c \
	gpu/host_loss.c \
	gpu/host_norm.c \
	gpu/host_ops.c \
	gpu/host_ops.h \
	gpu/host_pack.c \
	gpu/host_point.c \
	gpu/host_queue.c \
	gpu/host_segment.c \
	gpu/host_short_conv.c \
	gpu/host_tile.c \
	gpu/host_tile.h \
	gpu/host_update.c \
	gpu/host_work.c \
	gpu/lanes.h \
	gpu/launcher.c \
	gpu/launcher.h \
	gpu/meeting_note.c \
	gpu/meeting_note.h \
	gpu/member.c \
	gpu/member.h \
	gpu/net.c \
	gpu/net.h \
	gpu/ops.h \
	gpu/pace.c \
	gpu/pace.h \
	gpu/pack.h \
	gpu/pack_body.h \
	gpu/pack_element.h \
	gpu/pack_memory.h \
	gpu/pack_table.c \
	gpu/poison.c \
	gpu/poison.h \
	gpu/rank.c \
	gpu/ranks.c \
	gpu/ranks.h \
	gpu/reduce_ranks.c \
	gpu/reduce_ranks.h \
	gpu/rendezvous.c \
	gpu/rendezvous.h \
	gpu/resume.c \
	gpu/resume.h \
	gpu/run_log.c \
	gpu/run_log.h \
	gpu/shm_transport.c \
	gpu/stop_signal.c \
	gpu/stop_signal.h \
	gpu/step_body.h \
	gpu/stand_in.c \
	gpu/stand_in.h \
	gpu/step_graph.c \
	gpu/step_graph.h \
	gpu/tcp_transport.c \
	gpu/transport.h \
	gpu/values.c \
	gpu/values.h \
	gpu/work.h
if WITH_MPI
gpu_libgpu_a_SOURCES += gpu/mpi_transport.c
endif
if WITH_CUDA
gpu_libgpu_a_SOURCES += \
	gpu/cuda_attention_body.cuh \
	gpu/cuda_clock.c \
	gpu/cuda_device.c \
	gpu/cuda_graph.c \
	gpu/cuda_inner.h \
	gpu/cuda_item.cuh \
	gpu/cuda_kda_body.cuh \
	gpu/cuda_launch.cuh \
	gpu/cuda_library.c \
	gpu/cuda_library.h \
	gpu/cuda_link.c \
	gpu/cuda_model_body.cuh \
	gpu/cuda_nccl.c \
	gpu/cuda_open.c \
	gpu/cuda_ops.cu \
	gpu/cuda_ops.h \
	gpu/cuda_pack.cu \
	gpu/cuda_pack.h \
	gpu/cuda_probe.c \
	gpu/cuda_product.c \
	gpu/cuda_segment.c \
	gpu/cuda_stand_in.cu \
	gpu/cuda_stand_in.h \
	gpu/cuda_step.cu \
	gpu/cuda_step.h \
	gpu/cuda_table.c \
	gpu/cuda_work.c \
	gpu/product.h
-include $(wildcard gpu/*.cu.d)
endif

# .cu files: nvcc is the compiler, the C compiler is the linker. -fmad=false: as -ffp-contract=off,
# products and sums are rounded as the host rounds them.
NVCC_CMD = $(NVCC) -std=c++17 -O2 -fmad=false -lineinfo $(GENCODE) $(NVCC_WERROR) -I$(top_builddir) \
	-I$(top_srcdir) -Xcompiler -Wall,-Wextra,-fno-strict-aliasing $(NVCCFLAGS)
AM_V_NVCC = $(am__v_NVCC_@AM_V@)
am__v_NVCC_ = $(am__v_NVCC_@AM_DEFAULT_V@)
am__v_NVCC_0 = @echo "  NVCC    " $@;
am__v_NVCC_1 =
SUFFIXES = .cu
.cu.$(OBJEXT):
	@$(MKDIR_P) $(@D)
	$(AM_V_NVCC)$(NVCC_CMD) -MD -MP -MF $(@D)/$(*F).cu.d -c -o $@ $<
mostlyclean-local:
	-rm -f gpu/*.cu.d
