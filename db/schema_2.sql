-- Step 2 of the schema: a collective has a communicator and a reduction.
--
-- Before, all ranks were one communicator, over which gradients were averaged: that is what the
-- runs get that are there. The columns that are new in the views of step 1 come last in them.

-- How many ranks the group has that a rank is in, one row a communicator that a run uses.
CREATE TABLE communicator (
    run_id INTEGER NOT NULL REFERENCES run,
    comm   TEXT NOT NULL,
    ranks  INTEGER NOT NULL CHECK (ranks > 0),
    PRIMARY KEY (run_id, comm)
) STRICT, WITHOUT ROWID;
INSERT INTO communicator (run_id, comm, ranks)
SELECT id, 'shard', world FROM run WHERE id IN (SELECT run_id FROM collective);

-- comm is NULL where nothing is communicated.
ALTER TABLE task_label ADD COLUMN comm TEXT;
ALTER TABLE task_label ADD COLUMN reduction TEXT NOT NULL DEFAULT 'none';
UPDATE task_label SET comm = 'shard' WHERE collective;
UPDATE task_label SET reduction = 'avg' WHERE kind = 'reduce_scatter';

ALTER TABLE collective ADD COLUMN comm TEXT NOT NULL DEFAULT 'shard';
ALTER TABLE collective ADD COLUMN reduction TEXT NOT NULL DEFAULT 'none';
UPDATE collective SET reduction = 'avg' WHERE kind = 'reduce_scatter';

-- v_task: one row a task of the measured step.
--   run ... duration_ns   as in step 1
--   comm             among whom it communicates: shard, the ranks that parameters are cut over;
--                    reduce, the same once more; replicate, the ranks that hold the same shards;
--                    kept, those that share what an integer reshard keeps; else NULL
--   ranks            how many these are
--   reduction        sum, avg or premul (a sum of inputs that are multiplied before), or NULL
DROP VIEW v_task;
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

-- v_collective: messages of a step, one row a kind, communicator and size.
--   run, kind, dtype, elements, bytes, count, total_bytes   as in step 1
--   comm, ranks, reduction                                  as in v_task
DROP VIEW v_collective;
CREATE VIEW v_collective AS
SELECT collective.run_id AS run, collective.kind AS kind, collective.dtype AS dtype,
    collective.elements AS elements, collective.bytes AS bytes, collective.count AS count,
    collective.bytes * collective.count AS total_bytes, collective.comm AS comm,
    communicator.ranks AS ranks, nullif(collective.reduction, 'none') AS reduction
FROM collective
LEFT JOIN communicator
    ON communicator.run_id = collective.run_id AND communicator.comm = collective.comm;
