noinst_LIBRARIES += traces/libtraces.a
traces_libtraces_a_SOURCES = \
	traces/chrome.c \
	traces/chrome.h \
	traces/chrome_event.c \
	traces/chrome_event.h \
	traces/chrome_groups.c \
	traces/chrome_groups.h \
	traces/chrome_head.c \
	traces/chrome_inner.h \
	traces/chrome_plan.c \
	traces/chrome_plan.h \
	traces/nccl_row.c \
	traces/nccl_table.c \
	traces/nccl_table.h \
	traces/nccl_tests.c \
	traces/nccl_tests.h \
	traces/out_file.c \
	traces/out_file.h \
	traces/temp_guard.c \
	traces/temp_guard.h \
	traces/trace_check.c \
	traces/trace_check.h \
	traces/trace_event.c \
	traces/trace_event.h \
	traces/trace_findings.c \
	traces/trace_findings.h \
	traces/trace_groups.c \
	traces/trace_groups.h \
	traces/trace_json.c \
	traces/trace_json.h \
	traces/trace_keys.c \
	traces/trace_keys.h \
	traces/trace_links.c \
	traces/trace_links.h \
	traces/trace_rules.c \
	traces/trace_rules.h \
	traces/trace_slicer.c \
	traces/trace_slicer.h \
	traces/trace_tracks.c \
	traces/trace_tracks.h
EXTRA_DIST += traces/toy.json
