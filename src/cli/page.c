/*
 * The common head of pages; see page.h. Names from outside are made tame here.
 */
#include "src/cli/page.h"

void page_wrap(const char *paragraph, unsigned at, unsigned hanging, struct text *out)
{
    const struct term_margins margins = {
        .columns = TERM_PAGE_COLUMNS, .at = at, .hanging = hanging};
    term_wrap(paragraph, margins, out);
}

static void add_subject(const struct prepared *prepared, const char *units, const struct term *term,
                        struct text *out)
{
    const struct plan *plan = &prepared->plan;
    char model[TERM_NAME_BYTES], cluster[TERM_NAME_BYTES], count[32];
    struct text words;
    text_init(&words);
    text_add(&words, "%s parameters%s, on %llu GPU%s of %s (%llu to a node)",
             text_count(prepared->model.n_element, count), units, (unsigned long long)plan->world,
             plan->world == 1 ? "" : "s", term_name(prepared->cluster.name, cluster),
             (unsigned long long)plan->gpus_per_node);
    if (plan->options.replicas > 1)
        text_add(&words, ", %llu replicas of %llu", (unsigned long long)plan->options.replicas,
                 (unsigned long long)plan->shard_ranks);
    term_name(prepared->model.name, model);
    text_add(out, "%s%s%s: ", term->strong, model, term->plain);
    page_wrap(words.at, term_columns(model) + 2, 2, out);
    text_release(&words);
}

void page_head(const struct prepared *prepared, const struct options *options, const char *units,
               const struct term *term, struct text *out)
{
    struct text words;
    text_init(&words);
    add_subject(prepared, units, term, out);
    prepared_options_text(options, &words);
    text_add(out, "%soptions: ", term->quiet);
    page_wrap(words.at, 9, 9, out);
    text_add(out, "%s", term->plain);
    text_release(&words);
}
