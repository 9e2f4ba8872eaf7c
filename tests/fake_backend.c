/*
 * The backend of tests; see fake_backend.h. Nothing is checked here: that is up to the test.
 */
#include "tests/fake_backend.h"

#include <stdarg.h>
#include <stdio.h>

void fake_backend_init(struct fake_backend *fake, uint32_t fail_at)
{
    *fake = (struct fake_backend){.fail_at = fail_at};
    text_init(&fake->log);
}

void fake_backend_release(struct fake_backend *fake)
{
    text_release(&fake->log);
}

__attribute__((format(printf, 3, 4))) static enum status
count(struct fake_backend *fake, struct err *err, const char *fmt, ...)
{
    char line[96];
    va_list args;

    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    text_add(&fake->log, "%s\n", line);
    if (++fake->n_call == fake->fail_at)
        return err_set(err, STATUS_DEVICE, "told to fail at call %u: %s", fake->n_call, line);
    return STATUS_OK;
}

static enum status fake_open(void *self, const struct program *program,
                             const struct placement *placement, struct err *err)
{
    (void)program;
    (void)placement;
    return count(self, err, "open");
}

static enum status fake_segment(void *self, const struct segment_op *op, struct err *err)
{
    static const char *const acts[] = {
        [SEGMENT_RESERVE] = "reserve",
        [SEGMENT_MAP] = "map",
        [SEGMENT_UNMAP] = "unmap",
        [SEGMENT_RELEASE] = "release",
    };
    return count(self, err, "segment %s %u", acts[op->act], op->segment);
}

static enum status fake_launch(void *self, const struct launch *launch, struct err *err)
{
    if (launch->body_op == NO_OP)
        return count(self, err, "launch %u %u", launch->step, launch->task);
    return count(self, err, "launch %u %u %u", launch->step, launch->task, launch->body_op);
}

static enum status fake_record(void *self, uint32_t event, enum stream stream, struct err *err)
{
    return count(self, err, "record %s %u", stream_name(stream), event);
}

static enum status fake_wait(void *self, uint32_t event, enum stream stream, struct err *err)
{
    return count(self, err, "wait %s %u", stream_name(stream), event);
}

static enum status fake_host_wait(void *self, uint32_t event, struct err *err)
{
    return count(self, err, "host_wait %u", event);
}

static enum status fake_mark(void *self, enum phase phase, bool end, struct err *err)
{
    return count(self, err, "mark %s %s", phase_name(phase), end ? "end" : "begin");
}

static enum status fake_alloc(void *self, uint32_t buffer, struct err *err)
{
    return count(self, err, "alloc %u", buffer);
}

static enum status fake_free(void *self, uint32_t buffer, struct err *err)
{
    return count(self, err, "free %u", buffer);
}

static enum status fake_record_stream(void *self, uint32_t buffer, enum stream user,
                                      struct err *err)
{
    return count(self, err, "record_stream %s %u", stream_name(user), buffer);
}

static enum status fake_touch(void *self, uint32_t expanded_id, uint64_t bytes, enum stream pool,
                              bool freed, struct err *err)
{
    return count(self, err, "%s %u %llu %s", freed ? "dead" : "born", expanded_id,
                 (unsigned long long)bytes, stream_name(pool));
}

static enum status fake_step_end(void *self, uint32_t step, struct err *err)
{
    return count(self, err, "step_end %u", step);
}

static enum status fake_finish(void *self, struct err *err)
{
    return count(self, err, "finish");
}

static void fake_close(void *self)
{
    struct fake_backend *fake = self;
    text_add(&fake->log, "close\n");
    fake->n_close++;
}

const struct backend_ops fake_backend = {
    .name = "fake",
    .open = fake_open,
    .segment = fake_segment,
    .launch = fake_launch,
    .record = fake_record,
    .wait = fake_wait,
    .host_wait = fake_host_wait,
    .mark = fake_mark,
    .step_end = fake_step_end,
    .finish = fake_finish,
    .close = fake_close,
};

const struct backend_ops fake_backend_minimal = {
    .name = "fake minimal",
    .open = fake_open,
    .launch = fake_launch,
    .record = fake_record,
    .wait = fake_wait,
    .host_wait = fake_host_wait,
    .finish = fake_finish,
    .close = fake_close,
};

const struct backend_ops fake_backend_memory = {
    .name = "fake",
    .open = fake_open,
    .segment = fake_segment,
    .buf_alloc = fake_alloc,
    .buf_free = fake_free,
    .buf_record_stream = fake_record_stream,
    .launch = fake_launch,
    .record = fake_record,
    .wait = fake_wait,
    .host_wait = fake_host_wait,
    .mark = fake_mark,
    .step_end = fake_step_end,
    .finish = fake_finish,
    .close = fake_close,
};

const struct backend_ops fake_backend_touch = {
    .name = "fake touch",
    .open = fake_open,
    .touch = fake_touch,
    .launch = fake_launch,
    .record = fake_record,
    .wait = fake_wait,
    .host_wait = fake_host_wait,
    .finish = fake_finish,
    .close = fake_close,
};
