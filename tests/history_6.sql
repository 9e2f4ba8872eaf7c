-- A run history as a program with steps 1 to 6 of the schema alone has left it: the run of
-- run_by_hand(), as .dump of the sqlite3 shell prints it. What the later steps make of it is tested;
-- it is never made anew, since the files of users are not either.
BEGIN TRANSACTION;
CREATE TABLE string (
    id    INTEGER PRIMARY KEY,
    value TEXT NOT NULL UNIQUE
) STRICT;
INSERT INTO string VALUES(1,'root');
INSERT INTO string VALUES(2,'["embed.weight","head.weight"]');
INSERT INTO string VALUES(3,'layers.0');
INSERT INTO string VALUES(4,'["layers.0.w"]');
INSERT INTO string VALUES(5,'all_gather root');
INSERT INTO string VALUES(6,'forward root');
INSERT INTO string VALUES(7,'all_gather layers.0');
INSERT INTO string VALUES(8,'backward layers.0');
INSERT INTO string VALUES(9,'reduce_scatter layers.0');
INSERT INTO string VALUES(10,'optimizer');
CREATE TABLE document (
    id   INTEGER PRIMARY KEY,
    kind TEXT NOT NULL CHECK (kind IN ('model', 'plan', 'cluster')),
    name TEXT NOT NULL,
    hash TEXT NOT NULL CHECK (length(hash) = 16),
    json TEXT NOT NULL CHECK (json_valid(json))
) STRICT;
INSERT INTO document VALUES(1,'model','tiny','1696d9a7e0a1e015','{"layers":1}');
INSERT INTO document VALUES(2,'plan','','b116aed75e049797','{"units":"block"}');
INSERT INTO document VALUES(3,'cluster','toy','cb2c27cea01cb231','{"name":"toy"}');
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
INSERT INTO run VALUES(1,'sim',1796074667275888932,'1.2.3','{}','unshard sim tiny --gpus 2',1,2,3,'fedcba9876543210','0123456789abcdef',2,2,2999,NULL,'backward',1,1,6,1,2);
CREATE TABLE metric (
    run_id INTEGER NOT NULL REFERENCES run,
    name   TEXT NOT NULL,
    value  INTEGER NOT NULL,
    PRIMARY KEY (run_id, name)
) STRICT, WITHOUT ROWID;
INSERT INTO metric VALUES(1,'comm_ns',250);
INSERT INTO metric VALUES(1,'compute_ns',310);
INSERT INTO metric VALUES(1,'contention_ns',0);
INSERT INTO metric VALUES(1,'exposed_comm_ns',70);
INSERT INTO metric VALUES(1,'first_peak_allocated_bytes',900);
INSERT INTO metric VALUES(1,'first_peak_reserved_bytes',1024);
INSERT INTO metric VALUES(1,'fits',1);
INSERT INTO metric VALUES(1,'init_peak_bytes',500);
INSERT INTO metric VALUES(1,'memory_limit_bytes',4096);
INSERT INTO metric VALUES(1,'outside_bytes',0);
INSERT INTO metric VALUES(1,'peak_active_bytes',900);
INSERT INTO metric VALUES(1,'peak_allocated_bytes',900);
INSERT INTO metric VALUES(1,'peak_reserved_bytes',1024);
INSERT INTO metric VALUES(1,'retries',0);
INSERT INTO metric VALUES(1,'step_high_ns',420);
INSERT INTO metric VALUES(1,'step_low_ns',390);
INSERT INTO metric VALUES(1,'step_ns',400);
INSERT INTO metric VALUES(1,'tokens_per_s_per_gpu_milli',2500);
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
INSERT INTO unit VALUES(1,0,1,2,2000,2048,1024,1);
INSERT INTO unit VALUES(1,1,3,4,999,1000,500,0);
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
, comm TEXT, reduction TEXT NOT NULL DEFAULT 'none') STRICT;
INSERT INTO task_label VALUES(1,5,'all_gather','AG','forward','bf16',1,0,1,2048,'shard','none');
INSERT INTO task_label VALUES(2,6,'forward','C','forward','bf16',0,0,7,640,NULL,'none');
INSERT INTO task_label VALUES(3,7,'all_gather','AG','forward','bf16',1,1,1,1000,'shard','none');
INSERT INTO task_label VALUES(4,8,'backward','C','backward','bf16',0,1,9,640,NULL,'none');
INSERT INTO task_label VALUES(5,9,'reduce_scatter','RS','backward','fp32',1,1,1,1000,'shard','avg');
INSERT INTO task_label VALUES(6,10,'optimizer','C','optimizer','fp32',0,-1,2,1524,NULL,'none');
CREATE TABLE task (
    id          INTEGER PRIMARY KEY,
    label_id    INTEGER NOT NULL,
    microbatch  INTEGER NOT NULL,
    launch_ns   INTEGER NOT NULL,
    launched_ns INTEGER NOT NULL CHECK (launched_ns >= launch_ns),
    start_ns    INTEGER NOT NULL,
    end_ns      INTEGER NOT NULL CHECK (end_ns >= start_ns)
) STRICT;
INSERT INTO task VALUES(1,1,0,-30,-25,-20,50);
INSERT INTO task VALUES(2,2,0,-25,10,20,160);
INSERT INTO task VALUES(3,3,0,10,15,80,200);
INSERT INTO task VALUES(4,4,0,15,90,210,340);
INSERT INTO task VALUES(5,5,0,90,95,270,350);
INSERT INTO task VALUES(6,6,-1,95,99,360,400);
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
INSERT INTO memory_sample VALUES(1,0,700,1024,500,200,0,0,0,0,0,0,0,0,0);
INSERT INTO memory_sample VALUES(2,100,900,1024,500,200,0,0,0,0,0,200,0,0,0);
CREATE TABLE memory_peak (
    run_id INTEGER NOT NULL REFERENCES run,
    class  TEXT NOT NULL,
    bytes  INTEGER NOT NULL CHECK (bytes > 0),
    PRIMARY KEY (run_id, class)
) STRICT, WITHOUT ROWID;
INSERT INTO memory_peak VALUES(1,'activation',200);
INSERT INTO memory_peak VALUES(1,'optimizer',200);
INSERT INTO memory_peak VALUES(1,'sharded_param',500);
CREATE TABLE collective (
    run_id   INTEGER NOT NULL REFERENCES run,
    position INTEGER NOT NULL CHECK (position >= 0),
    kind     TEXT NOT NULL,
    dtype    TEXT NOT NULL,
    elements INTEGER NOT NULL CHECK (elements >= 0),
    bytes    INTEGER NOT NULL CHECK (bytes >= 0),
    count    INTEGER NOT NULL CHECK (count >= 0), comm TEXT NOT NULL DEFAULT 'shard', reduction TEXT NOT NULL DEFAULT 'none',
    PRIMARY KEY (run_id, position)
) STRICT, WITHOUT ROWID;
INSERT INTO collective VALUES(1,0,'all_gather','bf16',2048,4096,1,'shard','none');
INSERT INTO collective VALUES(1,1,'all_gather','bf16',1000,2000,1,'shard','none');
INSERT INTO collective VALUES(1,2,'reduce_scatter','fp32',1000,4000,1,'shard','avg');
CREATE TABLE communicator (
    run_id INTEGER NOT NULL REFERENCES run,
    comm   TEXT NOT NULL,
    ranks  INTEGER NOT NULL CHECK (ranks > 0),
    PRIMARY KEY (run_id, comm)
) STRICT, WITHOUT ROWID;
INSERT INTO communicator VALUES(1,'shard',2);
CREATE TABLE real_run (
    run_id    INTEGER PRIMARY KEY REFERENCES run,
    device    TEXT NOT NULL,
    transport TEXT NOT NULL,
    seed      INTEGER NOT NULL CHECK (seed >= 0),
    warmup    INTEGER NOT NULL CHECK (warmup >= 0),
    error     TEXT
) STRICT;
CREATE TABLE real_step (
    run_id     INTEGER NOT NULL REFERENCES run,
    step       INTEGER NOT NULL CHECK (step > 0),
    step_ns    INTEGER NOT NULL CHECK (step_ns >= 0),
    loss       REAL,
    not_finite INTEGER NOT NULL CHECK (not_finite >= 0),
    skipped    INTEGER NOT NULL CHECK (skipped IN (0, 1)),
    PRIMARY KEY (run_id, step)
) STRICT, WITHOUT ROWID;
CREATE TABLE real_rank (
    run_id   INTEGER NOT NULL REFERENCES run,
    rank     INTEGER NOT NULL CHECK (rank >= 0),
    step     INTEGER NOT NULL CHECK (step >= 0),
    error    TEXT,
    last_C   TEXT,
    last_AGI TEXT,
    last_AG  TEXT,
    last_RS  TEXT,
    last_AR  TEXT,
    PRIMARY KEY (run_id, rank)
) STRICT, WITHOUT ROWID;
CREATE TABLE real_check (
    run_id         INTEGER NOT NULL REFERENCES run,
    position       INTEGER NOT NULL CHECK (position >= 0),
    rank           INTEGER NOT NULL CHECK (rank >= 0),
    step           INTEGER NOT NULL CHECK (step >= 0),
    reserved_bytes INTEGER NOT NULL CHECK (reserved_bytes >= 0),
    mapped_bytes   INTEGER NOT NULL CHECK (mapped_bytes >= 0),
    PRIMARY KEY (run_id, position)
) STRICT, WITHOUT ROWID;
CREATE TABLE device_check (
    id           INTEGER PRIMARY KEY,
    created_ns   INTEGER NOT NULL,
    tool_version TEXT NOT NULL,
    part         TEXT NOT NULL,
    device       TEXT NOT NULL,
    name         TEXT NOT NULL,
    software     TEXT NOT NULL
) STRICT;
CREATE TABLE device_check_line (
    check_id INTEGER NOT NULL REFERENCES device_check,
    position INTEGER NOT NULL CHECK (position >= 0),
    key      TEXT NOT NULL,
    words    TEXT NOT NULL,
    value    REAL,
    unit     TEXT NOT NULL,
    bound    TEXT NOT NULL,
    goal     REAL,
    verdict  TEXT NOT NULL CHECK (verdict IN ('told', 'passed', 'failed')),
    PRIMARY KEY (check_id, position)
) STRICT, WITHOUT ROWID;
CREATE TABLE candidate (
    plan_group     INTEGER NOT NULL CHECK (plan_group > 0),
    search         INTEGER NOT NULL CHECK (search > 0),
    rank           INTEGER NOT NULL CHECK (rank > 0),
    units          TEXT NOT NULL,
    options        TEXT NOT NULL,
    step_ns        INTEGER NOT NULL CHECK (step_ns >= 0),
    peak_bytes     INTEGER NOT NULL CHECK (peak_bytes >= 0),
    reserved_bytes INTEGER CHECK (reserved_bytes >= 0),
    fits           INTEGER NOT NULL CHECK (fits IN (0, 1)),
    on_front       INTEGER NOT NULL CHECK (on_front IN (0, 1)),
    PRIMARY KEY (plan_group, search, rank)
) STRICT, WITHOUT ROWID;
CREATE INDEX document_by_hash ON document (hash, kind);
CREATE INDEX task_label_by_name ON task_label (name_id, elements);
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
CREATE VIEW v_unit AS
SELECT unit.run_id AS run, unit.unit AS unit, string.value AS name,
    unit.elements AS elements, unit.padded_elements AS padded_elements,
    unit.shard_elements AS shard_elements, unit.reshard AS reshard,
    json_array_length(members.value) AS params, members.value AS members
FROM unit
JOIN string ON string.id = unit.name_id
JOIN string AS members ON members.id = unit.members_id;
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
CREATE VIEW v_memory_peak AS
SELECT run.id AS run, run.peak_phase AS phase, run.peak_unit AS unit, string.value AS unit_name,
    peak.class AS class, peak.bytes AS bytes
FROM run
JOIN memory_peak AS peak ON peak.run_id = run.id
LEFT JOIN unit ON unit.run_id = run.id AND unit.unit = run.peak_unit
LEFT JOIN string ON string.id = unit.name_id;
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
CREATE VIEW v_task AS
SELECT run.id AS run, task.id - run.first_task AS task, string.value AS name, label.kind AS kind,
    label.collective AS collective, label.stream AS stream, label.phase AS phase,
    nullif(label.unit, -1) AS unit, unit_string.value AS unit_name,
    nullif(task.microbatch, -1) AS microbatch, label.kernels AS kernels, label.dtype AS dtype,
    label.elements AS elements, task.launch_ns AS launch_ns, task.launched_ns AS launched_ns,
    task.start_ns AS start_ns, task.end_ns AS end_ns, task.end_ns - task.start_ns AS duration_ns,
    label.comm AS comm, communicator.ranks AS ranks, nullif(label.reduction, 'none') AS reduction
FROM run
CROSS JOIN task ON task.id BETWEEN run.first_task AND run.first_task + run.n_task - 1
JOIN task_label AS label ON label.id = task.label_id
JOIN string ON string.id = label.name_id
LEFT JOIN unit ON unit.run_id = run.id AND unit.unit = label.unit
LEFT JOIN string AS unit_string ON unit_string.id = unit.name_id
LEFT JOIN communicator ON communicator.run_id = run.id AND communicator.comm = label.comm;
CREATE VIEW v_collective AS
SELECT collective.run_id AS run, collective.kind AS kind, collective.dtype AS dtype,
    collective.elements AS elements, collective.bytes AS bytes, collective.count AS count,
    collective.bytes * collective.count AS total_bytes, collective.comm AS comm,
    communicator.ranks AS ranks, nullif(collective.reduction, 'none') AS reduction
FROM collective
LEFT JOIN communicator
    ON communicator.run_id = collective.run_id AND communicator.comm = collective.comm;
CREATE VIEW v_step AS
SELECT step.run_id AS run, step.step AS step, step.step > real.warmup AS measured,
    nullif(step.step_ns, 0) AS step_ns, step.loss AS loss, step.not_finite AS not_finite,
    step.skipped AS skipped
FROM real_step AS step
JOIN real_run AS real ON real.run_id = step.run_id;
CREATE VIEW v_rank AS
SELECT run_id AS run, rank, step, error, last_C, last_AGI, last_AG, last_RS, last_AR
FROM real_rank;
CREATE VIEW v_check AS
SELECT run_id AS run, position, rank, step, reserved_bytes, mapped_bytes
FROM real_check;
CREATE VIEW v_device AS
SELECT device_check.id AS device_check,
    strftime('%Y-%m-%d %H:%M:%S', device_check.created_ns / 1000000000, 'unixepoch') AS created,
    device_check.tool_version AS tool_version, device_check.device AS device,
    device_check.name AS name, device_check.software AS software, device_check.part AS part,
    line.position AS position, line.key AS key, line.words AS words, line.value AS value,
    line.unit AS unit, line.bound AS bound, line.goal AS goal, line.verdict AS verdict
FROM device_check
JOIN device_check_line AS line ON line.check_id = device_check.id;
CREATE VIEW v_real AS
SELECT real.run_id AS run, real.device AS device, real.transport AS transport,
    (SELECT count(*) FROM real_rank WHERE real_rank.run_id = real.run_id) AS ranks,
    (SELECT count(*) FROM real_step WHERE real_step.run_id = real.run_id) AS steps,
    real.warmup AS warmup, real.seed AS seed, real.error IS NOT NULL AS failed,
    real.error AS error, iif(run.kind = 'emulated', run.world, NULL) AS emulated
FROM real_run AS real
JOIN run ON run.id = real.run_id;
CREATE VIEW v_candidate AS
SELECT plan_group, search, rank, units, options, step_ns, peak_bytes, reserved_bytes, fits, on_front
FROM candidate;
PRAGMA application_id = 1970172776;
PRAGMA user_version = 6;
COMMIT;
