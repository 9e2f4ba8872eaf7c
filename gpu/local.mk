# Real devices: the host's streams, kernels and transports.
noinst_LIBRARIES += gpu/libgpu.a
gpu_libgpu_a_SOURCES = \
	gpu/bell.c \
	gpu/bell.h \
	gpu/convert.h \
	gpu/device.h \
	gpu/host_pack.c \
	gpu/ops.h \
	gpu/pack.h \
	gpu/shm_transport.c \
	gpu/pack_body.h \
	gpu/pack_table.c \
	gpu/reduce.c \
	gpu/reduce.h \
	gpu/transport.h \
	gpu/work.h
if WITH_MPI
gpu_libgpu_a_SOURCES += gpu/mpi_transport.c
endif
