/*
 * Measured runs from a table: columns by name, what is filled in, and what is refused with its line
 * and column.
 */
#include <math.h>
#include <string.h>

#include "src/measured.h"
#include "tests/tap.h"

static struct arena arena;

static enum status read(const char *text, struct measured *out, struct err *err)
{
    struct csv csv;
    const enum status status = csv_parse(text, "t.csv", &arena, &csv, err);
    return status ? status : measured_from_csv(&csv, &arena, out, err);
}

static void test_good(void)
{
    struct measured measured;
    struct err err = {0};

    is_int(read("seq_len,id,model,gpu,gpus,micro_batch,step_s,peak_gib,peak_kind\n"
                "2048,one,mpt-7b,h100-sxm,8,4,1.5,,\n"
                "4096,two,mpt-7b,h100-sxm,16,1,2e-1,70.5,reserved\n",
                &measured, &err),
           STATUS_OK, "columns in any order (%s)", err.text);
    is_int(measured.n, 2, "two runs");
    const struct measured_run *one = &measured.runs[0], *two = &measured.runs[1];
    is_str(one->id, "one", "an id");
    is_int(one->seq_len, 2048, "a count");
    is_near(two->step_s, 0.2, 1e-12, "a number");
    is_int(two->line, 3, "its line");
    ok(isnan(one->peak_gib), "an empty number is none");
    is_near(two->peak_gib, 70.5, 1e-12, "one that is there is");
    is_str(one->system, "fsdp2", "a column that is missing is what it is taken to be");
    is_int(one->grad_accum, 1, "a count too");
    ok(isnan(one->nic_gbps_per_gpu), "or nothing");
}

static void test_bad(void)
{
#define HEADER "id,model,gpu,gpus,micro_batch,seq_len,step_s"
    static const struct {
        const char *text, *told;
    } cases[] = {
        {HEADER ",sead\na,b,c,1,1,1,1,1\n", "t.csv: line 1: unknown column 'sead'"},
        {HEADER ",nic_gbps\na,b,c,1,1,1,1,1\n",
         "t.csv: line 1: unknown column 'nic_gbps', did you mean 'nic_gbps_per_gpu'?"},
        {"id,model,gpu,gpus,micro_batch,seq_len\na,b,c,1,1,1\n",
         "t.csv: line 2: column 'step_s': a value is needed"},
        {HEADER "\n,b,c,1,1,1,1\n", "t.csv: line 2: column 'id': a value is needed"},
        {HEADER "\na,b,c,,1,1,1\n", "t.csv: line 2: column 'gpus': a value is needed"},
        {HEADER "\na,b,c,0,1,1,1\n",
         "t.csv: line 2: column 'gpus': '0' is not a whole number from 1 on"},
        {HEADER "\na,b,c,1,1.5,1,1\n",
         "t.csv: line 2: column 'micro_batch': '1.5' is not a whole number from 1 on"},
        {HEADER "\na,b,c,1,1,1,x\n", "t.csv: line 2: column 'step_s': 'x' is not a number above 0"},
        {HEADER "\na,b,c,1,1,1,-1\n", "t.csv: line 2: column 'step_s': '-1' is not a number"},
        {HEADER "\na,b,c,1,1,1,nan\n", "t.csv: line 2: column 'step_s': 'nan' is not a number"},
        {HEADER "\na,b,c,1,1,1,1\na,b,c,1,1,1,1\n",
         "t.csv: line 3: column 'id': 'a' is there twice"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct measured measured;
        struct err err = {0};
        is_int(read(cases[i].text, &measured, &err), STATUS_INPUT, "%s", cases[i].told);
        ok(!strncmp(err.text, cases[i].told, strlen(cases[i].told)), "that is told (got '%s')",
           err.text);
    }
}

int main(void)
{
    arena_init(&arena);
    test_good();
    test_bad();
    arena_release(&arena);
    return tap_done();
}
