/*
 * The families that are known, and how one is found. Nothing else in src/ names a family.
 */
#include "src/arch/arch.h"

#include <string.h>

const struct arch *const arch_families[] = {&arch_llama,      &arch_gpt2, &arch_mpt,     &arch_kda,
                                            &arch_simple_llm, &arch_pack, &arch_copy_in, NULL};

const struct arch *arch_find(const char *model_type)
{
    for (const struct arch *const *family = arch_families; *family; family++)
        for (const char *const *type = (*family)->model_types; *type; type++)
            if (strcmp(*type, model_type) == 0)
                return *family;
    return NULL;
}

const struct arch *arch_by_name(const char *name)
{
    for (const struct arch *const *family = arch_families; *family; family++)
        if (strcmp((*family)->name, name) == 0)
            return *family;
    return NULL;
}

enum status arch_fail_step(const struct model *model, struct err *err)
{
    return err_set(err, model->arch->no_step_status, "no step of '%s' can be built: %s",
                   model->name, model->arch->no_step);
}
