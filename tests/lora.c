/*
 * Adapters as a change of the model: names, shapes and counts as PEFT makes them, what is refused,
 * and what a step then gathers, reduces and updates.
 */
#include "src/lora.h"

#include <stdlib.h>
#include <string.h>

#include "src/program_print.h"
#include "tests/make.h"
#include "tests/tap.h"

static struct arena arena;

static struct model open_model(const char *name, uint64_t layers)
{
    struct model model;
    struct err err = {0};
    if (model_open(name, layers, &arena, &model, &err))
        tap_bail(err.text);
    return model;
}

static struct model open_adapted(const char *name, uint64_t layers, const char *lora)
{
    struct model model = open_model(name, layers);
    struct err err = {0};
    if (lora_add(&model, lora, &arena, &err))
        tap_bail(err.text);
    return model;
}

static const struct param *find(const struct model *model, const char *name)
{
    for (uint32_t i = 0; i < model->n_param; i++)
        if (strcmp(model->params[i].name, name) == 0)
            return &model->params[i];
    return NULL;
}

static void has(const struct model *model, const char *name, uint64_t rows, uint64_t columns,
                bool trainable)
{
    const struct param *param = find(model, name);
    ok(param && param->shape[0] == rows && param->shape[1] == columns &&
           param->trainable == trainable,
       "%s is %d x %d and %s", name, (int)rows, (int)columns, trainable ? "trained" : "frozen");
}

static void test_names(void)
{
    const struct model llama = open_adapted("llama3-8b", 2, "r=16,alpha=32");
    has(&llama, "model.layers.1.self_attn.v_proj.base_layer.weight", 1024, 4096, false);
    has(&llama, "model.layers.1.self_attn.v_proj.lora_A.default.weight", 16, 4096, true);
    has(&llama, "model.layers.1.self_attn.v_proj.lora_B.default.weight", 1024, 16, true);
    has(&llama, "model.layers.1.self_attn.k_proj.weight", 1024, 4096, false);
    has(&llama, "lm_head.weight", 128256, 4096, false);
    const struct model gpt = open_adapted("gpt2", 1, "r=4,targets=attn.c_*:c_fc");
    has(&gpt, "transformer.h.0.attn.c_attn.base_layer.weight", 768, 2304, false);
    has(&gpt, "transformer.h.0.attn.c_attn.lora_A.default.weight", 4, 768, true);
    has(&gpt, "transformer.h.0.attn.c_attn.lora_B.default.weight", 2304, 4, true);
    has(&gpt, "transformer.h.0.mlp.c_fc.lora_B.default.weight", 3072, 4, true);
    ok(find(&gpt, "transformer.h.0.attn.c_proj.lora_A.default.weight") &&
           find(&gpt, "transformer.h.0.mlp.c_proj.weight"),
       "a path inside the block tells layers of one name apart");
    ok(gpt.tied_head > 0 && strcmp(gpt.modules[gpt.tied_head].path, "lm_head") == 0,
       "a tied head stays where it is");
}

/* Of each block r (in + out) for each layer; the numbers are those that PEFT prints. */
static void test_counts(void)
{
    static const struct {
        const char *model, *lora;
        uint64_t trained;
    } cases[] = {
        {"llama3-8b", "r=16", 32 * 16 * (4096 + 4096 + 4096 + 1024)},
        {"llama2-7b", "r=8", 32 * 8 * 2 * (4096 + 4096)},
        {"llama3-8b", "r=16,targets=*",
         32 * 16 * (2 * (4096 + 4096) + 2 * (4096 + 1024) + 3 * (4096 + 14336))},
        {"gpt2", "r=8", 12 * 8 * (768 + 2304)},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct model base = open_model(cases[i].model, 0);
        const struct model model = open_adapted(cases[i].model, 0, cases[i].lora);
        uint64_t trained = 0;
        for (uint32_t p = 0; p < model.n_param; p++)
            trained += model.params[p].trainable ? model.params[p].numel : 0;
        is_int(trained, cases[i].trained, "%s %s: so many parameters are trained", cases[i].model,
               cases[i].lora);
        is_int(model.n_element, base.n_element + trained, "%s %s: and were not there before",
               cases[i].model, cases[i].lora);
        is_int(model.n_piece, base.n_piece, "%s %s: pieces are the same", cases[i].model,
               cases[i].lora);
    }
}

static void test_refused(void)
{
    static const struct {
        const char *model, *lora, *says;
    } cases[] = {
        {"llama3-8b", "16", "'16' is no KEY=VALUE"},
        {"llama3-8b", "r=0", "r is '0'"},
        {"llama3-8b", "alpha=32", "r, the rank of the adapters, is missing"},
        {"llama3-8b", "r=8,alpha=no", "alpha is 'no'"},
        {"llama3-8b", "r=8,rank=8", "'rank' is none of r, alpha and targets"},
        {"llama3-8b", "r=8,targets=q_prj",
         "no linear layer of a block is 'q_prj'; there are "
         "self_attn.q_proj, self_attn.k_proj"},
        {"llama3-8b", "r=8,targets=q_proj:lm_head", "is 'lm_head'"},
        {"llama3-8b", "r=8,targets=input_layernorm", "is 'input_layernorm'"},
        {"llama3-8b", "r=4611686018427387904", "more than 2^62 elements"},
        {"kda-1.75b", "r=8", "adapters of family kda are not modelled"},
        {"simple-llm", "r=8", "adapters of family simple-llm are not modelled"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct model model = open_model(cases[i].model, 1);
        const uint32_t n_param = model.n_param;
        struct err err = {0};
        ok(lora_add(&model, cases[i].lora, &arena, &err) != STATUS_OK &&
               strstr(err.text, cases[i].says) && model.n_param == n_param && !model.lora,
           "%s %s: \"%s\"", cases[i].model, cases[i].lora, err.text);
    }
    struct model twice = open_adapted("llama3-8b", 1, "r=8");
    struct err err = {0};
    ok(lora_add(&twice, "r=8", &arena, &err) == STATUS_USAGE && strstr(err.text, "already"),
       "adapters of adapters are refused");
}

static struct plan_options small_options(void)
{
    struct plan_options options = plan_options_default();
    options.gpus = 2;
    options.seq = 128;
    options.workspace_bytes = 8519680;
    return options;
}

/* What each kind of task of a steady step handles, all units together. */
static uint64_t elements_of(const struct program *program, enum task_kind kind)
{
    const struct section *steady = &program->sections[SECTION_STEADY];
    uint64_t elements = 0;
    for (uint32_t i = steady->begin; i < steady->end; i++) {
        const struct instr *instr = &program->instrs[i];
        if (instr->op == INSTR_LAUNCH && program->tasks[instr->id].kind == kind)
            elements += program->tasks[instr->id].elements;
    }
    return elements;
}

static void test_step(void)
{
    const struct plan_options options = small_options();
    struct made made;
    struct text text;
    make_init_lora(&made, "llama3-8b", 1, "r=16", &options);
    const uint64_t adapters = 16 * (4096 + 4096 + 4096 + 1024);
    is_int(elements_of(&made.program, TASK_REDUCE_SCATTER), adapters, "only adapters are reduced");
    ok(elements_of(&made.program, TASK_ALL_GATHER) >= made.model.n_element,
       "all parameters are gathered");
    text_init(&text);
    program_print(&made.program, SECTION_STEADY, false, &text);
    is_golden(text.at, "llama-1-layer-lora.txt");
    text_release(&text);
    make_release(&made);
}

static void test_compiled(void)
{
    struct plan_options options = small_options();
    const struct model model = open_adapted("llama3-8b", 1, "r=8");
    struct plan plan;
    struct err err = {0};
    options.ops = OPS_TORCH_COMPILE;
    ok(plan_resolve(&model, &options, &arena, &plan, &err) == STATUS_USAGE &&
           strstr(err.text, "adapters is not modelled"),
       "compiled blocks with adapters are refused");
    options.ops = OPS_NATIVE;
    ok(plan_resolve(&model, &options, &arena, &plan, &err) == STATUS_USAGE &&
           strstr(err.text, "ops native has no operators for adapters"),
       "and so are our own operators");
}

int main(void)
{
    arena_init(&arena);
    test_names();
    test_counts();
    test_refused();
    test_step();
    test_compiled();
    arena_release(&arena);
    return tap_done();
}
