# Real devices: the host's streams, kernels and transports.
noinst_LIBRARIES += gpu/libgpu.a
gpu_libgpu_a_SOURCES = \
	gpu/convert.h \
	gpu/device.h \
	gpu/ops.h \
	gpu/pack.h \
	gpu/transport.h \
	gpu/work.h
