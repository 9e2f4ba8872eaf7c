/*
 * A model from a config.json: which sizes are read from it, and what is said of a bad one.
 *
 * Cases are edits of one good small file.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/model.h"
#include "tests/quoted.h"
#include "tests/tap.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static struct arena arena;
static char folder[] = "config-test-XXXXXX"; /* in the build folder */
static char config_path[64];

static struct model open_or_bail(const char *what, uint64_t layers)
{
    struct model model;
    struct err err = {0};
    if (model_open(what, layers, &arena, &model, &err))
        tap_bail(err.text);
    return model;
}

struct edit {
    const char *key, *value; /* value NULL: without this key */
};
enum { MAX_EDITS = 3 };

/* A good small config.json with some keys replaced, added or left out. */
static void write_edited(const struct edit edits[MAX_EDITS])
{
    static const struct edit base[] = {
        {"model_type", "'llama'"},     {"hidden_size", "64"},        {"intermediate_size", "160"},
        {"num_hidden_layers", "2"},    {"num_attention_heads", "4"}, {"num_key_value_heads", "2"},
        {"vocab_size", "256"},
    };
    struct text text;
    text_init(&text);
    for (size_t i = 0; i < LENGTH(base); i++) {
        bool edited = false;
        for (size_t k = 0; k < MAX_EDITS && edits[k].key; k++)
            edited = edited || strcmp(edits[k].key, base[i].key) == 0;
        if (!edited)
            text_add(&text, "%s\n  '%s': %s", text.length ? "," : "{", base[i].key, base[i].value);
    }
    for (size_t k = 0; k < MAX_EDITS && edits[k].key; k++)
        if (edits[k].value)
            text_add(&text, ",\n  '%s': %s", edits[k].key, edits[k].value);
    text_add(&text, "\n}\n");
    quoted_write(config_path, text.at);
    text_release(&text);
}

static void test_good_configs(void)
{
    static const struct {
        struct edit edits[MAX_EDITS];
        uint64_t layers, kv_heads, head_dim, seq, parameters;
    } cases[] = {
        /* block 2*64*64 + 2*64*32 + 3*64*160 + 2*64 = 43,136; 2 blocks + 2*256*64 + 64 = 119,104 */
        {{{NULL, NULL}}, 2, 2, 16, 2048, 119104},
        {{{"num_key_value_heads", NULL}}, 2, 4, 16, 2048, 127296},
        {{{"num_key_value_heads", "null"}}, 2, 4, 16, 2048, 127296},
        {{{"head_dim", "32"}}, 2, 2, 32, 2048, 143680},
        {{{"num_attention_heads", "3"}, {"num_key_value_heads", "1"}, {"head_dim", "20"}},
         2, 1, 20, 2048, 115008}, /* heads of any size where it is written down */
        {{{"max_position_embeddings", "4096"}}, 2, 2, 16, 4096, 119104},
        {{{"max_position_embeddings", "131072"}}, 2, 2, 16, 8192, 119104},
        {{{"num_hidden_layers", "1"}}, 1, 2, 16, 2048, 75968},
        {{{"tie_word_embeddings", "false"}, {"attention_bias", "false"}, {"mlp_bias", "false"}},
         2, 2, 16, 2048, 119104},
        {{{"tie_word_embeddings", "true"}}, 2, 2, 16, 2048, 102720},
        {{{"dtype", "'bfloat16'"}, {"torch_dtype", "'bfloat16'"}}, 2, 2, 16, 2048, 119104},
        {{{"architectures", "['LlamaForCausalLM']"}, {"hidden_act", "'silu'"}},
         2, 2, 16, 2048, 119104},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        write_edited(cases[i].edits);
        struct model model = {0};
        struct err err = {0};
        const char *key = cases[i].edits[0].key ? cases[i].edits[0].key : "nothing";
        if (!is_int(model_open(config_path, 0, &arena, &model, &err), STATUS_OK,
                    "a config with %s edited is read", key)) {
            tap_note("%s", err.text);
            continue;
        }
        is_int(model.dims.layers, cases[i].layers, "%s: layers", key);
        is_int(model.dims.kv_heads, cases[i].kv_heads, "%s: key heads", key);
        is_int(model.dims.head_dim, cases[i].head_dim, "%s: size of a head", key);
        is_int(model.dims.default_seq, cases[i].seq, "%s: sequence", key);
        is_int(model.n_element, cases[i].parameters, "%s: parameters", key);
    }
}

static void test_folder_and_nesting(void)
{
    write_edited((struct edit[MAX_EDITS]){{NULL, NULL}});
    struct model model = open_or_bail(folder, 0);
    is_int(model.n_element, 119104, "a folder stands for the config.json in it");
    is_str(model.name, folder, "and gives the model its name");

    quoted_write(config_path, "{'model_type': 'wrapper', 'text_config': {'model_type': 'llama', "
                 "'hidden_size': 64, 'intermediate_size': 160, 'num_hidden_layers': 2, "
                 "'num_attention_heads': 4, 'num_key_value_heads': 2, 'vocab_size': 256}}");
    model = open_or_bail(config_path, 0);
    is_int(model.n_element, 119104, "a nested text_config is the one that counts");
}

/* The message of a refused file is one line with its name, the place and what is expected. */
static void is_refused(const char *says, const char *what)
{
    struct model model = {.name = "untouched"};
    struct err err = {0};
    is_int(model_open(config_path, 0, &arena, &model, &err), STATUS_INPUT, "%s is refused", what);
    if (!ok(strstr(err.text, config_path) && strstr(err.text, says) && !strchr(err.text, '\n'),
            "and the message has the file and \"%s\"", says))
        tap_note("%s", err.text);
    ok(strcmp(model.name, "untouched") == 0, "and no model is made of it");
}

static void test_bad_values(void)
{
    static const struct {
        struct edit edits[MAX_EDITS];
        const char *says;
    } cases[] = {
        {{{"model_type", "'mamba'"}},
         "model_type: unknown model type 'mamba'; known ones are 'llama', 'gpt2', 'mpt'"},
        {{{"model_type", NULL}}, "no model_type; known ones are 'llama', 'gpt2', 'mpt'"},
        {{{"model_type", "7"}}, "model_type: "},
        {{{"hidden_size", NULL}}, "missing key 'hidden_size'"},
        {{{"vocab_size", "null"}}, "missing key 'vocab_size'"},
        {{{"vocab_size", "0"}}, "vocab_size: a whole number of 1 or more"},
        {{{"vocab_size", "'256'"}}, "vocab_size: a whole number is needed, not a string"},
        {{{"intermediate_size", "-1"}},
         "intermediate_size: a whole number of 1 or more is needed, not -1"},
        {{{"intermediate_size", "1.5"}}, "intermediate_size: "},
        {{{"intermediate_size", "1e300"}}, "intermediate_size: "},
        {{{"num_hidden_layers", "0"}}, "num_hidden_layers: a whole number of 1 or more"},
        {{{"num_hidden_layers", "4097"}}, "num_hidden_layers: 4097 is too large"},
        {{{"num_attention_heads", "0"}}, "num_attention_heads: a whole number of 1 or more"},
        {{{"num_attention_heads", "6"}}, "num_attention_heads: 6 does not divide hidden_size"},
        {{{"num_attention_heads", "64"}}, "a head of odd size 1"},
        {{{"num_key_value_heads", "3"}}, "num_key_value_heads: 3 does not divide"},
        {{{"num_key_value_heads", "8"}}, "num_key_value_heads: 8 does not divide"},
        {{{"num_key_value_heads", "0"}}, "num_key_value_heads: a whole number of 1 or more"},
        {{{"head_dim", "0"}}, "head_dim: a whole number of 1 or more"},
        {{{"head_dim", "15"}}, "head_dim: a head of odd size 15"},
        {{{"num_attention_heads", "4503599627370496"}, {"head_dim", "4503599627370496"}},
         "head_dim: times num_attention_heads it passes 64 bits"},
        {{{"max_position_embeddings", "0"}},
         "max_position_embeddings: a whole number of 1 or more"},
        {{{"vocab_size", "4503599627370496"}, {"hidden_size", "4503599627370496"}},
         "'model.embed_tokens.weight' of 4503599627370496 x 4503599627370496 has more than 2^62"},
        {{{"vocab_size", "1125899906842624"}, {"hidden_size", "4096"}}, /* two of 2^62 */
         "passes 2^62 elements at 'model.layers.0.self_attn.q_proj.weight'"},
        {{{"tie_word_embeddings", "1"}}, "tie_word_embeddings: a boolean is needed"},
        {{{"attention_bias", "true"}}, "attention_bias: true is not supported"},
        {{{"mlp_bias", "true"}}, "mlp_bias: true is not supported"},
        {{{"mlp_bias", "1"}}, "mlp_bias: a boolean is needed, not a number"},
        {{{"hidden_act", "'gelu'"}}, "hidden_act: 'gelu' is not supported"},
        {{{"quantization_config", "{}"}}, "quantization_config: quantized parameters"},
        {{{"architectures", "['LlamaForSequenceClassification']"}},
         "architectures[0]: 'LlamaForSequenceClassification' is not supported"},
        {{{"architectures", "[]"}}, "architectures: must be a list"},
        {{{"dtype", "'float32'"}, {"torch_dtype", "'bfloat16'"}},
         "torch_dtype: 'bfloat16' contradicts dtype, which is 'float32'"},
        {{{"text_config", "3"}}, "text_config: must be an object"},
        {{{"text_config", "{'model_type': 'llama'}"}}, "text_config: missing key 'hidden_size'"},
        {{{"text_config", "{'model_type': 'llama'}"}, {"tie_word_embeddings", "true"}},
         "tie_word_embeddings is true outside text_config"},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        write_edited(cases[i].edits);
        is_refused(cases[i].says, cases[i].edits[0].key);
    }
}

static void test_bad_files(void)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"", "line 1"},
        {"{'model_type': 'llama',", "line 1"},
        {"{'model_type': 'llama'} 3", "line 1"},
        {"{\n'hidden_size': 6x4}", "line 2"},
        {"['llama']", "must be an object"},
        {"{'model_type': 'llama', 'model_type': 'llama'}", "twice"},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        quoted_write(config_path, cases[i].text);
        is_refused(cases[i].says, arena_printf(&arena, "bad text %zu", i));
    }
}

int main(void)
{
    if (!mkdtemp(folder))
        tap_bail("cannot make a folder for files");
    snprintf(config_path, sizeof(config_path), "%s/config.json", folder);
    arena_init(&arena);
    test_good_configs();
    test_folder_and_nesting();
    test_bad_values();
    test_bad_files();
    arena_release(&arena);
    unlink(config_path);
    rmdir(folder);
    return tap_done();
}
