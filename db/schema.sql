-- The run history: what was asked, what it was asked of, what came out.
--
-- Read it through the views (v_...), each documented where it stands; tables may change with the
-- schema version. Integers are ns and bytes. Times are counted from the start of the measured
-- step's window; what the host did ahead of it is negative. Runs, tasks and samples are only added.
--
-- This file is step 1 of the schema, run in one transaction with the setting of application_id and
-- user_version. It is never edited once released: a change is a further step.

-- Texts that repeat: names of tasks and units, lists of parameters.
CREATE TABLE string (
    id    INTEGER PRIMARY KEY,
    value TEXT NOT NULL UNIQUE
) STRICT;

-- Models, plans and clusters by content: equal ones are one row, shared between runs. The hash only
-- finds candidates: they are compared by name and text.
CREATE TABLE document (
    id   INTEGER PRIMARY KEY,
    kind TEXT NOT NULL CHECK (kind IN ('model', 'plan', 'cluster')),
    name TEXT NOT NULL,
    hash TEXT NOT NULL CHECK (length(hash) = 16),
    json TEXT NOT NULL CHECK (json_valid(json))
) STRICT;
CREATE INDEX document_by_hash ON document (hash, kind);

-- The tasks of a run are the n_task rows of table task from first_task on, its memory samples the
-- n_sample rows of memory_sample from first_sample on: appended together, so that no row of these
-- two long tables has to name its run.
CREATE TABLE run (
    id             INTEGER PRIMARY KEY,
    kind           TEXT NOT NULL,
    created_ns     INTEGER NOT NULL,
    tool_version   TEXT NOT NULL,
    environment    TEXT NOT NULL,
    command        TEXT NOT NULL,
    model_id       INTEGER NOT NULL REFERENCES document,
    plan_id        INTEGER NOT NULL REFERENCES document,
    cluster_id     INTEGER NOT NULL REFERENCES document,
    program_hash   TEXT NOT NULL CHECK (length(program_hash) = 16),
    placement_hash TEXT NOT NULL CHECK (length(placement_hash) = 16),
    world          INTEGER NOT NULL CHECK (world >= 0),
    gpus_per_node  INTEGER NOT NULL CHECK (gpus_per_node >= 0),
    parameters     INTEGER NOT NULL CHECK (parameters >= 0),
    plan_group     INTEGER CHECK (plan_group > 0),
    peak_phase     TEXT NOT NULL,
    peak_unit      INTEGER,
    first_task     INTEGER NOT NULL,
    n_task         INTEGER NOT NULL CHECK (n_task >= 0),
    first_sample   INTEGER NOT NULL,
    n_sample       INTEGER NOT NULL CHECK (n_sample >= 0)
) STRICT;

-- A metric that a run does not have is no row.
CREATE TABLE metric (
    run_id INTEGER NOT NULL REFERENCES run,
    name   TEXT NOT NULL,
    value  INTEGER NOT NULL,
    PRIMARY KEY (run_id, name)
) STRICT, WITHOUT ROWID;

-- members is the list of its parameters' names in the unit's order, a JSON array.
CREATE TABLE unit (
    run_id          INTEGER NOT NULL REFERENCES run,
    unit            INTEGER NOT NULL CHECK (unit >= 0),
    name_id         INTEGER NOT NULL REFERENCES string,
    members_id      INTEGER NOT NULL REFERENCES string,
    elements        INTEGER NOT NULL CHECK (elements >= 0),
    padded_elements INTEGER NOT NULL CHECK (padded_elements >= 0),
    shard_elements  INTEGER NOT NULL CHECK (shard_elements >= 0),
    reshard         INTEGER NOT NULL CHECK (reshard IN (0, 1)),
    PRIMARY KEY (run_id, unit)
) STRICT, WITHOUT ROWID;

-- What tasks have in common, over microbatches and runs: all but their times. unit is the number of
-- a unit in the run at hand, -1 for none: NULL would not be unique.
CREATE TABLE task_label (
    id         INTEGER PRIMARY KEY,
    name_id    INTEGER NOT NULL REFERENCES string,
    kind       TEXT NOT NULL,
    stream     TEXT NOT NULL,
    phase      TEXT NOT NULL,
    dtype      TEXT NOT NULL,
    collective INTEGER NOT NULL CHECK (collective IN (0, 1)),
    unit       INTEGER NOT NULL CHECK (unit >= -1),
    kernels    INTEGER NOT NULL CHECK (kernels >= 0),
    elements   INTEGER NOT NULL CHECK (elements >= 0)
) STRICT;
CREATE INDEX task_label_by_name ON task_label (name_id, elements);

-- The measured step, in order of issue; microbatch -1 is none. label_id is a row of task_label, but
-- without REFERENCES: to look it up for each row took a third of the time to store a run. Both are
-- written in one transaction.
CREATE TABLE task (
    id          INTEGER PRIMARY KEY,
    label_id    INTEGER NOT NULL,
    microbatch  INTEGER NOT NULL,
    launch_ns   INTEGER NOT NULL,
    launched_ns INTEGER NOT NULL CHECK (launched_ns >= launch_ns),
    start_ns    INTEGER NOT NULL,
    end_ns      INTEGER NOT NULL CHECK (end_ns >= start_ns)
) STRICT;

-- The curve of memory: the highest since the sample before. The classes sum to allocated.
CREATE TABLE memory_sample (
    id                INTEGER PRIMARY KEY,
    at_ns             INTEGER NOT NULL,
    allocated         INTEGER NOT NULL CHECK (allocated =
        sharded_param + optimizer + sharded_grad + all_gather_buffer + unsharded_param +
        unsharded_grad + reduce_buffer + activation + logits + temporary + workspace),
    reserved          INTEGER NOT NULL,
    sharded_param     INTEGER NOT NULL,
    optimizer         INTEGER NOT NULL,
    sharded_grad      INTEGER NOT NULL,
    all_gather_buffer INTEGER NOT NULL,
    unsharded_param   INTEGER NOT NULL,
    unsharded_grad    INTEGER NOT NULL,
    reduce_buffer     INTEGER NOT NULL,
    activation        INTEGER NOT NULL,
    logits            INTEGER NOT NULL,
    temporary         INTEGER NOT NULL,
    workspace         INTEGER NOT NULL
) STRICT;

-- What was allocated at the highest moment; a class that had nothing is no row.
CREATE TABLE memory_peak (
    run_id INTEGER NOT NULL REFERENCES run,
    class  TEXT NOT NULL,
    bytes  INTEGER NOT NULL CHECK (bytes > 0),
    PRIMARY KEY (run_id, class)
) STRICT, WITHOUT ROWID;

CREATE TABLE collective (
    run_id   INTEGER NOT NULL REFERENCES run,
    position INTEGER NOT NULL CHECK (position >= 0),
    kind     TEXT NOT NULL,
    dtype    TEXT NOT NULL,
    elements INTEGER NOT NULL CHECK (elements >= 0),
    bytes    INTEGER NOT NULL CHECK (bytes >= 0),
    count    INTEGER NOT NULL CHECK (count >= 0),
    PRIMARY KEY (run_id, position)
) STRICT, WITHOUT ROWID;

-- v_run: one row a run.
--   run              its number, from 1 on
--   kind             sim, or plan: one row of a comparison
--   created          when it was stored, UTC
--   tool_version     of the program that stored it
--   environment      system, machine and compiler, as JSON; nothing that names the host
--   command          what was typed
--   model, cluster   their names
--   options          the plan's options in force, as JSON
--   world            ranks; gpus_per_node of them share a node
--   parameters       of the model
--   units, tasks     how many there are
--   program_hash     equal for equal programs
--   placement_hash   equal for equal addresses
--   plan_group       shared by the rows of one comparison, else NULL
--   step_ns ...      the metrics, in the unit of their name; NULL where the run has none
CREATE VIEW v_run AS
SELECT run.id AS run, run.kind AS kind,
    strftime('%Y-%m-%d %H:%M:%S', run.created_ns / 1000000000, 'unixepoch') AS created,
    run.tool_version AS tool_version, run.environment AS environment, run.command AS command,
    model.name AS model, cluster.name AS cluster, plan.json AS options,
    run.world AS world, run.gpus_per_node AS gpus_per_node, run.parameters AS parameters,
    (SELECT count(*) FROM unit WHERE unit.run_id = run.id) AS units, run.n_task AS tasks,
    run.program_hash AS program_hash, run.placement_hash AS placement_hash,
    run.plan_group AS plan_group,
    (SELECT value FROM metric WHERE run_id = run.id AND name = 'step_low_ns') AS step_low_ns,
    (SELECT value FROM metric WHERE run_id = run.id AND name = 'step_ns') AS step_ns,
    (SELECT value FROM metric WHERE run_id = run.id AND name = 'step_high_ns') AS step_high_ns,
    (SELECT value FROM metric WHERE run_id = run.id AND name = 'compute_ns') AS compute_ns,
    (SELECT value FROM metric WHERE run_id = run.id AND name = 'comm_ns') AS comm_ns,
    (SELECT value FROM metric WHERE run_id = run.id AND name = 'exposed_comm_ns')
        AS exposed_comm_ns,
    (SELECT value FROM metric WHERE run_id = run.id AND name = 'contention_ns') AS contention_ns,
    (SELECT value FROM metric WHERE run_id = run.id AND name = 'tokens_per_s_per_gpu_milli')
        AS tokens_per_s_per_gpu_milli,
    (SELECT value FROM metric WHERE run_id = run.id AND name = 'mfu_micro') AS mfu_micro,
    (SELECT value FROM metric WHERE run_id = run.id AND name = 'hfu_micro') AS hfu_micro,
    (SELECT value FROM metric WHERE run_id = run.id AND name = 'peak_allocated_bytes')
        AS peak_allocated_bytes,
    (SELECT value FROM metric WHERE run_id = run.id AND name = 'peak_active_bytes')
        AS peak_active_bytes,
    (SELECT value FROM metric WHERE run_id = run.id AND name = 'peak_reserved_bytes')
        AS peak_reserved_bytes,
    (SELECT value FROM metric WHERE run_id = run.id AND name = 'first_peak_allocated_bytes')
        AS first_peak_allocated_bytes,
    (SELECT value FROM metric WHERE run_id = run.id AND name = 'first_peak_reserved_bytes')
        AS first_peak_reserved_bytes,
    (SELECT value FROM metric WHERE run_id = run.id AND name = 'init_peak_bytes')
        AS init_peak_bytes,
    (SELECT value FROM metric WHERE run_id = run.id AND name = 'outside_bytes') AS outside_bytes,
    (SELECT value FROM metric WHERE run_id = run.id AND name = 'memory_limit_bytes')
        AS memory_limit_bytes,
    (SELECT value FROM metric WHERE run_id = run.id AND name = 'fits') AS fits,
    (SELECT value FROM metric WHERE run_id = run.id AND name = 'retries') AS retries
FROM run
JOIN document AS model ON model.id = run.model_id
JOIN document AS plan ON plan.id = run.plan_id
JOIN document AS cluster ON cluster.id = run.cluster_id;

-- v_unit: one row a unit.
--   run, unit        the unit's number in its run
--   name             of its module
--   elements         of its parameters; padded_elements is the full message, shard_elements a
--                    rank's part of it
--   reshard          1: its parameters are freed after forward
--   params           how many parameters it holds
--   members          their names in the unit's order, as a JSON array
CREATE VIEW v_unit AS
SELECT unit.run_id AS run, unit.unit AS unit, string.value AS name,
    unit.elements AS elements, unit.padded_elements AS padded_elements,
    unit.shard_elements AS shard_elements, unit.reshard AS reshard,
    json_array_length(members.value) AS params, members.value AS members
FROM unit
JOIN string ON string.id = unit.name_id
JOIN string AS members ON members.id = unit.members_id;

-- v_task: one row a task of the measured step.
--   run, task        the task's number in its run, in order of issue
--   name             what it does and for whom
--   kind             forward, backward, all_gather, reduce_scatter, ...
--   collective       1: it communicates
--   stream           C computes; AG, RS and AR communicate; AGI copies
--   phase            forward, loss, backward, metrics, optimizer
--   unit, unit_name  whose it is, or NULL
--   microbatch       from 0 on, or NULL
--   kernels          launches that the host makes for it
--   dtype, elements  what moves, or what is written
--   launch_ns        the host begins to launch it, and is done with that at launched_ns
--   start_ns         the device begins, and is done at end_ns; duration_ns lies between
CREATE VIEW v_task AS
SELECT run.id AS run, task.id - run.first_task AS task, string.value AS name, label.kind AS kind,
    label.collective AS collective, label.stream AS stream, label.phase AS phase,
    nullif(label.unit, -1) AS unit, unit_string.value AS unit_name,
    nullif(task.microbatch, -1) AS microbatch, label.kernels AS kernels, label.dtype AS dtype,
    label.elements AS elements, task.launch_ns AS launch_ns, task.launched_ns AS launched_ns,
    task.start_ns AS start_ns, task.end_ns AS end_ns, task.end_ns - task.start_ns AS duration_ns
FROM run
CROSS JOIN task ON task.id BETWEEN run.first_task AND run.first_task + run.n_task - 1
JOIN task_label AS label ON label.id = task.label_id
JOIN string ON string.id = label.name_id
LEFT JOIN unit ON unit.run_id = run.id AND unit.unit = label.unit
LEFT JOIN string AS unit_string ON unit_string.id = unit.name_id;

-- v_memory: one row a sample of the memory curve.
--   run, sample      the sample's number in its run
--   at_ns            when the host was there
--   allocated        the highest since the sample before, in bytes; reserved in the same way
--   sharded_param .. what allocated consists of, by class
CREATE VIEW v_memory AS
SELECT run.id AS run, sample.id - run.first_sample AS sample, sample.at_ns AS at_ns,
    sample.allocated AS allocated, sample.reserved AS reserved,
    sample.sharded_param AS sharded_param, sample.optimizer AS optimizer,
    sample.sharded_grad AS sharded_grad, sample.all_gather_buffer AS all_gather_buffer,
    sample.unsharded_param AS unsharded_param, sample.unsharded_grad AS unsharded_grad,
    sample.reduce_buffer AS reduce_buffer, sample.activation AS activation,
    sample.logits AS logits, sample.temporary AS temporary, sample.workspace AS workspace
FROM run
CROSS JOIN memory_sample AS sample
    ON sample.id BETWEEN run.first_sample AND run.first_sample + run.n_sample - 1;

-- v_memory_peak: what was allocated at the highest moment of a run, one row a class that had bytes.
--   run
--   phase            when that was
--   unit, unit_name  whose work it was, or NULL
--   class, bytes     the bytes of a run sum to its peak_allocated_bytes
CREATE VIEW v_memory_peak AS
SELECT run.id AS run, run.peak_phase AS phase, run.peak_unit AS unit, string.value AS unit_name,
    peak.class AS class, peak.bytes AS bytes
FROM run
JOIN memory_peak AS peak ON peak.run_id = run.id
LEFT JOIN unit ON unit.run_id = run.id AND unit.unit = run.peak_unit
LEFT JOIN string ON string.id = unit.name_id;

-- v_collective: messages of a step, one row a kind and size.
--   run
--   kind, dtype      all_gather, reduce_scatter; of the wire
--   elements, bytes  of one message, padding included
--   count            messages per rank and optimizer step; total_bytes of all of them
CREATE VIEW v_collective AS
SELECT run_id AS run, kind, dtype, elements, bytes, count, bytes * count AS total_bytes
FROM collective;

-- v_exposed: how much of each collective nothing on stream C hid, one row a collective task.
--   run, task, name, kind, phase, unit, start_ns, end_ns   as in v_task
--   counted_ns       its time inside the window, less what runs together with an earlier one
--   covered_ns       of counted_ns: while a task on stream C ran
--   exposed_ns       the rest; a run's sum is its exposed_comm_ns
--
-- Tasks of stream C do not overlap, so that its busy time before a moment is the sum of the tasks
-- that began by then, less what the last of them has left to run: one pass in order of time.
CREATE VIEW v_exposed AS
WITH span AS NOT MATERIALIZED (
    SELECT run.id AS run, task.id AS id, label.collective AS collective, label.stream AS stream,
        task.start_ns AS start_ns, task.end_ns AS end_ns
    FROM run
    CROSS JOIN task ON task.id BETWEEN run.first_task AND run.first_task + run.n_task - 1
    JOIN task_label AS label ON label.id = task.label_id
    WHERE label.collective OR label.stream = 'C'
), earlier AS NOT MATERIALIZED (
    SELECT run, id, end_ns, max(start_ns, 0, ifnull(
        max(end_ns) OVER (PARTITION BY run ORDER BY start_ns, id
                          ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0)) AS begin_ns
    FROM span WHERE collective
), moment AS NOT MATERIALIZED (
    SELECT run, NULL AS id, 0 AS is_end, start_ns AS at_ns, end_ns - start_ns AS busy_ns, end_ns
    FROM span WHERE stream = 'C'
    UNION ALL
    SELECT run, id, is_end, iif(is_end, max(begin_ns, end_ns), begin_ns), 0, NULL
    FROM earlier, (SELECT 0 AS is_end UNION ALL SELECT 1)
), busy AS NOT MATERIALIZED (
    SELECT run, id, is_end, at_ns,
        sum(busy_ns) OVER so_far - max(0, ifnull(max(end_ns) OVER so_far, at_ns) - at_ns)
            AS busy_ns
    FROM moment
    WINDOW so_far AS (PARTITION BY run ORDER BY at_ns)
), part AS (
    SELECT run, id, is_end, at_ns - lag(at_ns) OVER pair AS counted_ns,
        busy_ns - lag(busy_ns) OVER pair AS covered_ns
    FROM busy WHERE id IS NOT NULL
    WINDOW pair AS (PARTITION BY run, id ORDER BY is_end)
)
SELECT part.run AS run, task.id - run.first_task AS task, string.value AS name,
    label.kind AS kind, label.phase AS phase, nullif(label.unit, -1) AS unit,
    task.start_ns AS start_ns, task.end_ns AS end_ns,
    part.counted_ns AS counted_ns, part.covered_ns AS covered_ns,
    part.counted_ns - part.covered_ns AS exposed_ns
FROM part
JOIN run ON run.id = part.run
JOIN task ON task.id = part.id
JOIN task_label AS label ON label.id = task.label_id
JOIN string ON string.id = label.name_id
WHERE part.is_end;
