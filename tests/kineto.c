/*
 * The reader of PyTorch's profiles on small traces whose numbers are known.
 *
 * Each is a text with single quotes in place of double ones. Real profiles are counted again in
 * tests/trace_show.sh; here is what these do not have: FSDP's ranges, sizes that only the operator
 * knows, graphs, times that make no sense, traces of 2021.
 */
#include "traces/kineto.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/tap.h"

static struct arena arena;
static char path[] = "/tmp/unshard-kineto-XXXXXX";

/* Events, parted by commas, as the trace that they are. */
static struct kineto read_text(const char *events)
{
    struct kineto trace;
    struct err err = {.text = ""};
    FILE *file = fopen(path, "wb");
    if (!file || fprintf(file, "{\"traceEvents\": [") < 0)
        tap_bail("a file cannot be written");
    for (const char *at = events; *at; at++)
        fputc(*at == '\'' ? '"' : *at, file);
    if (fprintf(file, "]}") < 0 || fclose(file))
        tap_bail("a file cannot be written");
    if (kineto_read(path, &arena, &trace, &err)) {
        tap_note("%s", err.text);
        tap_bail("a trace cannot be read");
    }
    return trace;
}

#define KERNEL(name, ts, dur, args)                                                   \
    "{'ph': 'X', 'cat': 'kernel', 'name': '" name "', 'pid': 0, 'tid': 7, 'ts': " #ts \
    ", 'dur': " #dur ", 'args': {'device': 0, 'stream': 7" args "}}"
#define ON_HOST(cat, name, ts, dur, args)                                              \
    "{'ph': 'X', 'cat': '" cat "', 'name': '" name "', 'pid': 9, 'tid': 9, 'ts': " #ts \
    ", 'dur': " #dur ", 'args': {" args "}}"
#define LAUNCH(ts, correlation) \
    ON_HOST("cuda_runtime", "cudaLaunchKernel", ts, 2, "'correlation': " #correlation)
#define RANGE(name, ts, dur) ON_HOST("user_annotation", name, ts, dur, "")
#define SIZES                                                                             \
    "'Collective name': '_reduce_scatter_base', 'In msg nelems': 800, 'Out msg nelems': " \
    "100, 'Group size': 8, 'dtype': 'Float', 'Process Group Name': '2', "                 \
    "'Process Group Ranks': '[0, 1]'"

static const struct kineto_range *range_of(const struct kineto *trace, const char *name)
{
    static const struct kineto_range none = {.name = ""};
    for (uint32_t i = 0; i < trace->n_range; i++) {
        if (!strcmp(trace->ranges[i].name, name))
            return &trace->ranges[i];
    }
    return &none;
}

/* clang-format off */

static void test_streams(void)
{
    const struct kineto trace = read_text(
        KERNEL("b", 20.5, 10, "") ","
        KERNEL("a", 1, 4, "") ","
        KERNEL("a", 2, 1.2505, "") ","
        KERNEL("a", 4, 3, ""));
    const struct kineto_stream *stream = trace.streams;
    is_int(trace.n_stream, 1, "kernels of one stream");
    is_int(stream->n_kernel, 4, "are counted");
    is_int(stream->busy_ns, 16000, "and busy is what they cover, in whatever order they come");
    is_int(stream->end_ns - stream->begin_ns, 29500, "of a span from the first to the last");
    is_int(trace.kernels[1].spread.sum_ns, 8251, "by name: a half of a ns is one more");
    is_int(trace.kernels[1].spread.mid_ns, 3000, "with the one in the middle");
}

static void test_nonsense(void)
{
    const struct kineto trace = read_text(
        KERNEL("a", 1, -1, "") ","
        KERNEL("a", 0, 0, "") ","
        KERNEL("a", 9e15, 1, "") ","
        KERNEL("a", -9e15, 1, "") ","
        KERNEL("a", 1, 9e12, "") ","
        KERNEL("a", 1, 0, "") ","
        "{}, {'ph': 'X', 'cat': 'kernel', 'name': 'a', 'ts': 1}");
    is_int(trace.n_discarded, 6, "kernels that end before they begin, or at no time, are left out");
    is_int(trace.n_gpu, 1, "one that takes no time is not");
}

static void test_old(void)
{
    const struct kineto trace = read_text(
        "{'ph': 'X', 'cat': 'Kernel', 'name': 'a', 'pid': 1, 'tid': 'stream 20', 'ts': '5', "
        "'dur': '2', 'args': {}},"
        "{'ph': 'X', 'cat': 'Memset', 'name': 'a', 'pid': 1, 'tid': 'stream 20', 'ts': 8, "
        "'dur': 2}");
    is_int(trace.n_stream, 1, "a trace of 2021 names its streams in words");
    is_int(trace.streams[0].stream, 20, "which hold the number");
    is_int(trace.streams[0].device, 1, "the device is the process");
    is_int(trace.streams[0].n_set, 1, "and categories are capital");
    is_int(trace.streams[0].busy_ns, 4000, "times may be strings");
}

static void test_names(void)
{
    const struct kineto trace = read_text(KERNEL("q\\'\\u00e9", 1, 1, ""));
    is_str(trace.kernels[0].name, "q\"\xc3\xa9", "a name is without its escapes");
}

/* One launch of a graph starts two kernels; another's launch is not in the file. */
static void test_links(void)
{
    const struct kineto trace = read_text(
        KERNEL("a", 50, 4, ", 'correlation': 1") ","
        KERNEL("b", 60, 5, ", 'correlation': 1") ","
        KERNEL("c", 70, 6, ", 'correlation': 2") ","
        RANGE("outer", 0, 20) ","
        RANGE("before", 0, 6) ","
        RANGE("inner", 5, 10) ","
        RANGE("after", 15, 9) ","
        LAUNCH(6, 1));
    is_int(trace.n_unlaunched, 1, "a kernel may have no launch");
    is_int(range_of(&trace, "inner")->gpu_ns, 9000, "a range has the kernels of its launches");
    is_int(range_of(&trace, "outer")->n_kernel, 2, "as the range around it has");
    is_int(range_of(&trace, "after")->n_kernel, 0, "and the one behind it has not");
    is_int(range_of(&trace, "before")->n_kernel, 0, "nor the one that ends with it");
    is_int(range_of(&trace, "before")->host.sum_ns, 6000, "which is there");
}

static void test_other_thread(void)
{
    const struct kineto trace = read_text(
        KERNEL("a", 50, 4, ", 'correlation': 1") ","
        LAUNCH(6, 1) ","
        "{'ph': 'X', 'cat': 'user_annotation', 'name': 'other', 'pid': 9, 'tid': 8, 'ts': 0, "
        "'dur': 20}");
    is_int(range_of(&trace, "other")->host.n, 1, "a range of another thread");
    is_int(range_of(&trace, "other")->n_kernel, 0, "has none of them");
}

static void test_steps(void)
{
    const struct kineto trace = read_text(
        RANGE("ProfilerStep#5", 0, 20) ","
        RANGE("ProfilerStep#6", 30, 24) ","
        KERNEL("a", 1, 1, ""));
    is_int(trace.n_range, 1, "steps are one range");
    is_int(range_of(&trace, "ProfilerStep")->host.n, 2, "with all of them");
    is_int(range_of(&trace, "ProfilerStep")->host.sum_ns, 44000, "and their time");
}

/* A block is forwarded inside of the root; the last hook has one before it on another thread. */
static void test_units(void)
{
    const struct kineto trace = read_text(
        "{'ph': 'X', 'cat': 'user_annotation', 'name': 'FSDP::pre_backward (layers.1)', 'pid': 9, "
        "'tid': 8, 'ts': 76, 'dur': 2},"
        RANGE("FSDP::pre_forward", 0, 5) ","
        RANGE("FSDP::pre_forward (layers.0)", 10, 5) ","
        RANGE("FSDP::all_gather (layers.0)", 11, 3) ","
        RANGE("FSDP::all_gather (layers.0)", 12, 1) ","
        LAUNCH(12, 1) ","
        LAUNCH(20, 2) ","
        RANGE("FSDP::post_forward (layers.0)", 30, 5) ","
        LAUNCH(40, 3) ","
        RANGE("FSDP::post_forward", 50, 5) ","
        RANGE("FSDP::pre_backward (layers.0)", 60, 5) ","
        LAUNCH(66, 4) ","
        RANGE("FSDP::post_backward_accumulate (layers.0)", 70, 5) ","
        RANGE("FSDP::post_backward_accumulate (layers.1)", 80, 5) ","
        KERNEL("nccl", 100, 9, ", 'correlation': 1") ","
        KERNEL("f", 110, 20, ", 'correlation': 2") ","
        KERNEL("h", 130, 3, ", 'correlation': 3") ","
        KERNEL("b", 140, 40, ", 'correlation': 4"));
    const struct kineto_range *gather = range_of(&trace, "FSDP::all_gather (layers.0)");
    is_int(range_of(&trace, "FSDP::forward (layers.0)")->gpu_ns, 20000, "forward of a unit");
    is_int(range_of(&trace, "FSDP::forward (layers.0)")->host.sum_ns, 15000, "between its hooks");
    is_int(range_of(&trace, "FSDP::forward")->gpu_ns, 32000, "that of the root has its blocks");
    is_int(range_of(&trace, "FSDP::backward (layers.0)")->gpu_ns, 40000, "backward of a unit");
    is_int(range_of(&trace, "FSDP::backward (layers.1)")->host.n, 0, "none of two threads");
    is_int(gather->host.n, 1, "a range inside one of its name is the same");
    is_int(gather->collective_ns, 9000, "and its collective counts once");
}

static void test_collectives(void)
{
    const struct kineto trace = read_text(
        KERNEL("ncclKernel_ReduceScatter", 100, 9, ", 'correlation': 1") ","
        KERNEL("ncclKernel_ReduceScatter", 90, 7, ", " SIZES) ","
        KERNEL("ncclDevKernel_AllGather_RING_LL", 150, 5, ", 'correlation': 2") ","
        ON_HOST("cpu_op", "record_param_comms", 0, 9, SIZES) ","
        LAUNCH(2, 1) ","
        LAUNCH(20, 2));
    const struct kineto_collective *sized = &trace.collectives[0], *other = &trace.collectives[1];
    is_int(trace.n_collective, 2, "sizes of a kernel and of the operator around a launch are one");
    is_int(sized->spread.n, 2, "collective");
    is_str(sized->kind, "reduce_scatter", "of a kind");
    is_int(sized->bytes, 3200, "whose message is the larger side");
    is_str(sized->list, "[0, 1]", "among some ranks");
    is_int(trace.calls[0].dur_ns, 7000, "calls come in order of time");
    is_str(other->kind, "all_gather", "without sizes the kernel names the kind");
    is_int(other->bytes, 0, "and no bytes");
    is_int(trace.works[KINETO_COLLECTIVE].n, 3, "all are collectives");
}

#define BF16 "'c10::BFloat16'"

static const struct kineto_product *products_of(struct kineto *trace)
{
    *trace = read_text(
        ON_HOST("cpu_op", "aten::linear", 0, 20, "'Input Dims': [[8, 16], [4, 16]]") ","
        ON_HOST("cpu_op", "aten::addmm", 2, 10, "'Input Dims': [[4], [8, 16], [16, 4]], "
                "'Input type': [" BF16 ", " BF16 ", " BF16 "]") ","
        LAUNCH(3, 1) ","
        LAUNCH(5, 2) ","
        ON_HOST("cpu_op", "aten::bmm", 30, 10, "'Input Dims': [[3, 8, 16], [3, 16, 4]], "
                "'Input type': ['float', 'float']") ","
        LAUNCH(31, 3) ","
        ON_HOST("cpu_op", "aten::mm", 50, 10, "'Input Dims': [[8, 16], [17, 4]], "
                "'Input type': ['float', 'float']") ","
        LAUNCH(51, 4) ","
        ON_HOST("cpu_op", "aten::_flash_attention_forward", 70, 10,
                "'Input Dims': [[2, 64, 3, 32], [2, 64, 3, 32], [2, 64, 3, 32]], "
                "'Input type': [" BF16 "], "
                "'Concrete Inputs': ['', '', '', '', '', '64', '64', '0.', 'True']") ","
        LAUNCH(71, 5) ","
        KERNEL("a", 100, 4, ", 'correlation': 1") ","
        KERNEL("a", 110, 5, ", 'correlation': 2") ","
        KERNEL("a", 120, 6, ", 'correlation': 3") ","
        KERNEL("a", 130, 7, ", 'correlation': 4") ","
        KERNEL("a", 140, 8, ", 'correlation': 5"));
    return trace->products;
}

static void test_products(void)
{
    struct kineto trace;
    const struct kineto_product *linear = products_of(&trace), *batched = &linear[1];
    const struct kineto_product *attention = &linear[2];
    is_int(trace.n_product, 3, "factors that do not fit are no product");
    is_int(linear->spread.sum_ns, 9000, "a product is all kernels that its operator launches");
    is_near(kineto_product_flop(linear), 2.0 * 8 * 16 * 4, 0, "of so many operations");
    is_near(kineto_product_flop(batched), 3 * 2.0 * 8 * 16 * 4, 0, "three at once");
    is_int(attention->causal, 1, "attention that does not look ahead");
    is_near(kineto_product_flop(attention), 2.0 * 2 * 3 * 64 * 64 * 32, 0, "has half a square");
    is_str(attention->dtype, "c10::BFloat16", "in its type");
}

static void test_launches(void)
{
    const struct kineto trace = read_text(
        LAUNCH(0, 1) ","
        LAUNCH(30, 3) ","
        LAUNCH(10, 2) ","
        ON_HOST("cuda_runtime", "cudaMemcpyAsync", 15, 5, "'correlation': 9") ","
        ON_HOST("cuda_runtime", "cudaDeviceSynchronize", 40, 5, "'correlation': 10"));
    is_int(trace.launch.n, 3, "calls that launch kernels");
    is_int(trace.interval.n, 2, "and what lies between them");
    is_int(trace.interval.most_ns, 20000, "in order of time");
}
/* clang-format on */

int main(void)
{
    const int file = mkstemp(path);
    if (file < 0 || close(file))
        tap_bail("a file cannot be made");
    arena_init(&arena);
    test_streams();
    test_nonsense();
    test_old();
    test_names();
    test_links();
    test_other_thread();
    test_steps();
    test_units();
    test_collectives();
    test_products();
    test_launches();
    unlink(path);
    arena_release(&arena);
    return tap_done();
}
