/*
 * One slot a rule: a file with a million overlaps makes one line.
 */
#include "traces/trace_findings.h"

#include <stdarg.h>
#include <stdio.h>

#define TEXT_CHARS 240

static const struct {
    const char *rule, *reader;
} rules[] = {
#define X(id, rule, reader) [RULE_##id] = {rule, reader},
    TRACE_RULES(X)
#undef X
};

void trace_findings_init(struct trace_findings *findings, struct arena *arena)
{
    *findings = (struct trace_findings){.arena = arena};
    for (int i = 0; i < RULE_N; i++) {
        findings->of[i].rule = rules[i].rule;
        findings->of[i].reader = rules[i].reader;
        findings->of[i].text = "";
    }
}

bool trace_found(struct trace_findings *findings, enum trace_rule rule, uint64_t offset)
{
    struct trace_finding *finding = &findings->of[rule];
    if (finding->count++ > 0)
        return false;
    finding->offset = offset;
    return true;
}

void trace_say(struct trace_findings *findings, enum trace_rule rule, const char *fmt, ...)
{
    char text[TEXT_CHARS];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    for (char *at = text; *at; at++) {
        if ((unsigned char)*at < 0x20 || *at == 0x7f)
            *at = '?';
    }
    findings->of[rule].text = arena_strdup(findings->arena, text);
}

void trace_found_keys(struct trace_findings *findings, const struct trace_keys *keys,
                      const char *text, uint64_t offset)
{
    enum { SHOWN = 60 };
    const struct json_span *key = &keys->again;
    size_t shown = key->length < SHOWN ? key->length : SHOWN;
    while (shown < key->length && shown > 0 && ((unsigned char)key->at[shown] & 0xc0) == 0x80)
        shown--;
    for (uint64_t i = 0; i < keys->n_again; i++) {
        if (trace_found(findings, RULE_KEYS, offset + (uint64_t)(key->at - text)))
            trace_say(findings, RULE_KEYS, "key '%.*s%s' stands twice in one object", (int)shown,
                      key->at, shown < key->length ? "..." : "");
    }
}

void trace_findings_report(const struct trace_findings *findings, struct trace_report *out)
{
    out->findings = arena_array(findings->arena, struct trace_finding, RULE_N);
    out->n_finding = 0;
    for (int i = 0; i < RULE_N; i++) {
        if (findings->of[i].count > 0)
            out->findings[out->n_finding++] = findings->of[i];
    }
}
