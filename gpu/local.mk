# Real devices: the host's streams, kernels and transports.
noinst_LIBRARIES += gpu/libgpu.a
gpu_libgpu_a_SOURCES = \
	gpu/bell.c \
	gpu/bell.h \
	gpu/convert.h \
	gpu/device.h \
	gpu/host_attention.c \
	gpu/host_attention.h \
	gpu/host_attention_dgrad.c \
	gpu/host_decay.c \
	gpu/host_delta_rule.c \
	gpu/host_embedding.c \
	gpu/host_head_norm.c \
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
	gpu/host_short_conv.c \
	gpu/host_tile.c \
	gpu/host_tile.h \
	gpu/host_queue.c \
	gpu/host_segment.c \
	gpu/host_short_conv.c \
	gpu/host_tile.c \
	gpu/host_tile.h \
	gpu/host_update.c \
	gpu/host_work.c \
	gpu/lanes.h \
	gpu/ops.h \
	gpu/pack.h \
	gpu/pack_body.h \
	gpu/pack_table.c \
	gpu/reduce.c \
	gpu/reduce.h \
	gpu/shm_transport.c \
	gpu/transport.h \
	gpu/work.h
if WITH_MPI
gpu_libgpu_a_SOURCES += gpu/mpi_transport.c
endif
