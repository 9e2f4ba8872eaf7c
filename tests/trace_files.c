/*
 * Every trace that we have from real profilers is read to its end: with findings, but never without
 * an answer. Known facts about some of them are held.
 */
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "tests/tap.h"
#include "traces/trace_check.h"

/* What was counted in these files by other means; count of 0: the rule does not occur. */
static const struct fact {
    const char *file, *rule;
    uint64_t count;
} facts[] = {
    {"hta_negative_queue_rank0.json.gz", "flow-paired", 28196}, /* 'f' without 's' */
    {"hta_negative_queue_rank0.json.gz", "launch-once", 49},    /* shared correlations */
    {"hta_nccl_data.json.gz", "nccl-arguments", 0},
    {"hta_nccl_data.json.gz", "nccl-sizes", 0},
    {"hta_nccl_data.json.gz", "nccl-group", 0},
    {"hta_nccl_data.json.gz", "strict-json", 0},
    {"tl_h100_qwen1.5-0.5b.json.gz", "launch-paired", 509}, /* graph replays */
    {"hta_rank_not_found.json.gz", "rank-given", 1},
    {"hta_distributed_info_not_found.json.gz", "rank-given", 1},
    {"param_dlrm_worker1_step_12.1694128201556.pt.trace.json.gz", "rank-given", 0},
    {"param_dlrm_worker1_step_12.1694128201556.pt.trace.json.gz", "numeric-ids", 1},
};

static uint64_t count_of(const struct trace_report *report, const char *rule)
{
    for (uint32_t i = 0; i < report->n_finding; i++) {
        if (!strcmp(report->findings[i].rule, rule))
            return report->findings[i].count;
    }
    return 0;
}

static void check_facts(const char *file, const struct trace_report *report)
{
    for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++) {
        if (!strcmp(file, facts[i].file))
            is_int(count_of(report, facts[i].rule), facts[i].count, "%s: %s", file, facts[i].rule);
    }
}

static bool is_trace(const char *file)
{
    return strstr(file, ".json") && !strstr(file, "rocprof");
}

static int read_folder(const char *folder)
{
    char path[512];
    snprintf(path, sizeof(path), "%s", tap_shared(folder) ? tap_shared(folder) : "");
    DIR *dir = *path ? opendir(path) : NULL;
    int n = 0;
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        char file[800];
        struct arena arena;
        struct trace_report report = {0};
        struct err err = {.text = ""};
        if (*entry->d_name == '.')
            continue;
        arena_init(&arena);
        snprintf(file, sizeof(file), "%s/%s", path, entry->d_name);
        const enum status status = trace_check(file, &arena, &report, &err);
        is_int(status, is_trace(entry->d_name) ? STATUS_NO : STATUS_INPUT, "%s: %s", entry->d_name,
               is_trace(entry->d_name) ? "read, with findings" : "not a Chrome trace");
        ok(status != STATUS_INPUT || strlen(err.text) > 0, "%s: an answer is given", entry->d_name);
        check_facts(entry->d_name, &report);
        arena_release(&arena);
        n++;
    }
    if (dir)
        closedir(dir);
    return n;
}

int main(void)
{
    if (!tap_shared("traces") || !tap_shared("cases/json"))
        return tap_skip_all("no shared traces");
    ok(read_folder("traces") > 0, "there are traces");
    ok(read_folder("cases/json") > 0, "there are cases");
    return tap_done();
}
