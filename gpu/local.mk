# Real devices: the host's streams, kernels and transports.
noinst_LIBRARIES += gpu/libgpu.a
gpu_libgpu_a_SOURCES = \
	gpu/convert.h \
	gpu/device.h \
	gpu/host_pack.c \
	gpu/ops.h \
	gpu/pack.h \
	gpu/pack_body.h \
	gpu/pack_table.c \
	gpu/reduce_ranks.c \
	gpu/reduce_ranks.h \
	gpu/transport.h \
	gpu/work.h
